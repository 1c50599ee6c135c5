package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// Every GET route is measured over HTTP on a database with many rows: so many entities, runs, streams and events, and a hundredth of
// that as open operations. One of each is made as users make them, and its rows are copied.

const (
	readsGoal  = 100 * time.Millisecond // for the 95th percentile
	readsMost  = 300 * time.Millisecond // for each request
	readsCalls = 40                     // of each route
)

// reads are the requests. A route may have several, with filters that match rows at the end of a list, or none.
var reads = []string{
	"approvals", "approvals?status=expired", "approvals?status=approved", "approvals/{approval}", "audit", "audit?action=key.create",
	"batches", "batches?backward=true", "batches?status=CANCELLED", "batches/b", "batches/b/events", "batches/b/items", "batches/b/items?state=failed", "bulk", "bulk/{bulk}", "bulk/{bulk}/members", "claims",
	"events", "events?limit=1000", "events/search?name=none", "events/search?name=none&backward=true", "feed", "feed?limit=1000", "handlers", "handlers/Do",
	"inbox", "inbox/counts", "keys", "keys/{key}",
	"lifecycles", "lifecycles/invoice", "lifecycles/invoice/counts", "lifecycles/invoice/diagram", "lifecycles/invoice/entities", "lifecycles/invoice/entities?status=gone",
	"lifecycles/invoice/entities?updatedSince=2126-01-01T00:00:00Z", "lifecycles/invoice/entities/{entity}", "lifecycles/invoice/entities/{entity}?at=0",
	"lifecycles/invoice/entities/{entity}/attempts", "lifecycles/invoice/entities/{entity}/history", "lifecycles/invoice/entities/{entity}/timeline",
	"live?watch=inbox", "live?watch=overview", "live?watch=lifecycle:invoice,operations,runs,streams",
	"nodes", "operations", "operations?state=due", "operations?handler=Do", "operations/{operation}", "overview", "races", "rates",
	"reactions", "reactions/r", "reactions/r/streams", "reactions/r/streams?blocked=true", "requests?operation=none", "requests/kbatches",
	"scopes", "scopes/user", "scopes/user/u", "scopes/user/u?at=0", "search?q=m-", "search?q={entity}", "search?q={run}", "search?q=copy-", "search?q=none",
	"streams", "streams?prefix=n", "streams/s-5", "streams/s-5/events", "streams/$entity%2Finvoice%2F{entity}/events", "timeline?stream=$entity/invoice/{entity}", "timeline?stream=$run/{run}",
	"wallets", "wallets/w", "wallets/w/audit", "wallets/w/ledger", "webhooks", "webhooks/{webhook}",
	"workflow-definitions", "workflow-definitions/{definition}", "workflow-definitions/{definition}/diagram",
	"workflow-runs", "workflow-runs?status=CANCELLED", "workflow-runs?status=FAILED", "workflow-runs?key=copy-5", "workflow-runs?step=none", "workflow-runs?since=2126-01-01T00:00:00Z", "workflow-runs?until=2001-01-01T00:00:00Z", "workflow-runs?status=COMPLETED&handler=none", "workflow-runs/{run}", "workflow-runs/{run}/events", "workflow-runs/{run}/steps", "workspaces",
}

// measureReads prints the latencies on both databases.
func measureReads(ctx context.Context, c config) error {
	for _, open := range []func(context.Context, config, ...holdfast.Part) (*copier, func(), error){copySQLite, copyPostgres} {
		api := httpapi.New(httpapi.Options{NoKeys: true, SecretKeys: [][]byte{make([]byte, 32)}})
		k, closed, err := open(ctx, c, api, invoices, workflows[oneStep], stream.Feed(stream.FeedOptions{}))
		if err != nil {
			return err
		}
		if c.run.MatchString(cellName(k.store, "reads", 1)) {
			err = k.measureReads(ctx, api, c.reads)
		}
		closed()
		if err != nil {
			return fmt.Errorf("%s: %w", k.store, err)
		}
	}
	return nil
}

func (k *copier) measureReads(ctx context.Context, api *httpapi.API, rows int) error {
	address, stop, err := listen(ctx, api)
	if err != nil {
		return err
	}
	defer stop()
	r := &reader{base: address + "/api/v1/", names: make(map[string]string)}
	stopEngine := background(ctx, k.hf)
	err = r.models(ctx, k)
	stopEngine()
	if err != nil {
		return err
	}
	begun := clock.Now()
	if err := k.fill(ctx, r.names, rows); err != nil {
		return err
	}
	fmt.Printf("\n%s/reads: %d entities, runs, streams and events, %d open operations, filled in %s\n", k.store, rows, rows/100, clock.Since(begun).Round(time.Second))
	return r.measure(ctx, k.store)
}

// reader calls the API. names has the ids of what was made.
type reader struct {
	base  string
	names map[string]string
}

// call sends a request, and reads an id from the response if field is not empty.
func (r *reader) call(ctx context.Context, method, path, body, field string) (id string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "k"+path)
	if path == "keys" || method == http.MethodGet {
		req.Header.Del("Idempotency-Key")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		return "", errors.Join(err, fmt.Errorf("%s %s: %s %.300s", method, path, resp.Status, text))
	}
	if field == "" {
		return "", nil
	}
	var all any
	if err := json.Unmarshal(text, &all); err != nil {
		return "", err
	}
	for part := range strings.SplitSeq(field, ".") {
		if list, ok := all.([]any); ok && len(list) > 0 {
			all = list[0]
		}
		object, _ := all.(map[string]any)
		all = object[part]
	}
	id, ok := all.(string)
	if !ok {
		return "", fmt.Errorf("%s %s has no %s: %.300s", method, path, field, text)
	}
	return id, nil
}

const job = `{"workflow": "job", "owning_module": "m", "initial_status": "open", "status_types": ["open", "busy", "done"], "janitor": {},
	"steps": [{"step_id": 1, "step_key": "do", "status": "open", "successful_claim_state": ["busy", "open"], "successful_state": "done", "action": "Do"}]}`

// models makes one of each kind.
func (r *reader) models(ctx context.Context, k *copier) error {
	for _, x := range []struct{ method, path, body, name, field string }{
		{"PUT", "handlers/Do", `{"kind":"worker"}`, "", ""},
		{"PUT", "lifecycles/job", job, "", ""},
		{"POST", "lifecycles/job/entities", `{"id":"m"}`, "", ""},
		{"POST", "lifecycles/job/entities/m/steps/do?waitMs=0", `{"requester":"admin"}`, "operation", "operation"},
		{"POST", "lifecycles/invoice/entities", `{"id":"m","data":{"amount":1,"currency":"EUR"}}`, "", ""},
		{"POST", "streams/s/events", `{"events":[{"name":"paid","data":{"amount":4200}}]}`, "", ""},
		{"PUT", "wallets/w", `{"allowNegative":true}`, "", ""},
		{"POST", "batches", `{"id":"b","wallet":"w","handler":"Do","items":[{"key":"a","cost":1}]}`, "", ""},
		{"POST", "bulk", `{"action":"run.cancel","ids":["none"]}`, "bulk", "bulk.id"},
		{"PUT", "reactions/r", `{"events":["none"]}`, "", ""},
		{"PUT", "scopes/user/u", `{"a":1}`, "", ""},
		{"POST", "webhooks", `{"url":"https://example.com/","events":["none"]}`, "webhook", "id"},
		{"POST", "keys", `{"name":"n","role":"read"}`, "key", "id"},
		{"POST", "workflow-definitions", `{"name":"ask","version":"1","steps":[{"name":"ok","type":"approval","prompt":"=\"Pay?\""}]}`, "", ""},
		{"POST", "workflow-runs", `{"definitionId":"ask@1"}`, "", ""},
	} {
		id, err := r.call(ctx, x.method, x.path, x.body, x.field)
		if err != nil {
			return err
		}
		r.names[x.name] = id
	}
	model, _, err := workflows[oneStep].Start(ctx, k.hf, amount, run.Key("model"))
	if err == nil {
		model, err = run.Await(ctx, k.hf, model.ID)
	}
	if err != nil {
		return err
	}
	r.names["model"], r.names["definition"] = model.ID, model.Definition
	for name, path := range map[string]string{"approval": "approvals", "numbered": "events"} { // these take a moment
		for {
			if r.names[name], err = r.call(ctx, http.MethodGet, path, "", map[string]string{"approval": "items.id", "numbered": "items.stream"}[name]); err == nil {
				break
			}
			if clock.Wait(ctx, 50*time.Millisecond) != nil {
				return err
			}
		}
	}
	return nil
}

// fill copies the rows of the models. The ranges of numbers differ, because the ids of events are made of them.
func (k *copier) fill(ctx context.Context, names map[string]string, rows int) error {
	const page = 10_000
	model := names["model"]
	names["entity"], names["run"] = fmt.Sprintf("m-%d", rows/2), fmt.Sprintf("%s-%d", model, 2*rows+rows/2)
	for first := 0; first < rows; first += page {
		last := min(first+page, rows)
		err := k.hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
			for _, x := range []struct {
				table, where string
				renamed      map[string]string
				base, rows   int
			}{
				{"entity", "lifecycle = 'invoice' AND id = 'm'", map[string]string{"id": "'m-' || g.n"}, 0, rows},
				{"history", "stream = '$entity/invoice/m'", map[string]string{"id": k.newID, "stream": "'$entity/invoice/m-' || g.n"}, 0, rows},
				{"stream", "name = 's'", map[string]string{"name": "'s-' || g.n"}, 0, rows},
				{"event", "stream = 's'", map[string]string{"id": k.newID, "stream": "'s-' || g.n"}, 0, rows},
				{"feed", "stream = 's'", map[string]string{"position": "t.position + g.n", "stream": "'s-' || g.n"}, 0, rows},
				{"follow", "reaction = '$feed' AND stream = 's'", map[string]string{"stream": "'s-' || g.n"}, 0, rows},
				{"run", "id = '" + model + "'", map[string]string{"id": "'" + model + "-' || g.n", "key": "'copy-' || g.n"}, 2 * rows, rows},
				{"step", "run = '" + model + "'", map[string]string{"run": "'" + model + "-' || g.n"}, 2 * rows, rows},
				{"history", "stream = '$run/" + model + "'", map[string]string{"id": k.newID, "stream": "'$run/" + model + "-' || g.n"}, 2 * rows, rows},
				{"entity", "lifecycle = 'job' AND id = 'm'", map[string]string{"id": "'m-' || g.n", "operation": "t.operation || '-' || g.n"}, 4 * rows, rows / 100},
				{"history", "stream = '$entity/job/m'", map[string]string{"id": k.newID, "stream": "'$entity/job/m-' || g.n"}, 4 * rows, rows / 100},
			} {
				if first < x.rows {
					if err := k.duplicate(ctx, tx, x.table, x.where, x.renamed, x.base+first, x.base+min(last, x.rows)); err != nil {
						return err
					}
				}
			}
			return k.exec(ctx, tx, fmt.Sprintf("UPDATE %s SET last = last + %d", k.table("sequence"), last-first))
		})
		if err != nil {
			return err
		}
	}
	if k.store != "postgres" {
		return nil
	}
	return k.hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error { return k.exec(ctx, tx, "ANALYZE") })
}

// measure prints the latencies of all requests, the slowest first.
func (r *reader) measure(ctx context.Context, store string) error {
	type line struct {
		path          string
		p50, p95, max time.Duration
	}
	var all []line
	for _, path := range reads {
		for name, id := range r.names {
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(id))
		}
		var took []time.Duration
		for i := range readsCalls + 2 {
			begun := clock.Now()
			if _, err := r.call(ctx, http.MethodGet, path, "", ""); err != nil {
				fmt.Println(err)
				break
			}
			if i >= 2 { // the first plan their statements
				took = append(took, clock.Since(begun))
			}
		}
		if len(took) > 0 {
			slices.Sort(took)
			all = append(all, line{path, took[len(took)/2], took[len(took)*95/100], took[len(took)-1]})
		}
	}
	slices.SortFunc(all, func(a, b line) int { return int(b.p95 - a.p95) })
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	over, slow := 0, 0
	for _, l := range all {
		if l.p95 > readsGoal {
			over++
		}
		if l.max > readsMost {
			slow++
		}
		fmt.Fprintf(w, "%s\tGET %s\tp50 %.1f ms\tp95 %.1f ms\tmax %.1f ms\n", store, l.path, l.p50.Seconds()*1000, l.p95.Seconds()*1000, l.max.Seconds()*1000)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("%s/reads: of %d requests, %d have a p95 of more than %s, and %d a maximum of more than %s\n", store, len(all), over, readsGoal, slow, readsMost)
	return r.missing(ctx)
}

// missing prints the GET routes that were not measured.
func (r *reader) missing(ctx context.Context) error {
	var doc struct{ Paths map[string]map[string]any }
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+"openapi.json", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil {
		return err
	}
	for path, methods := range doc.Paths {
		parts := strings.Split(strings.TrimPrefix(path, "/api/v1/"), "/")
		measured := slices.ContainsFunc(reads, func(one string) bool {
			one, _, _ = strings.Cut(one, "?")
			as := strings.Split(one, "/")
			return slices.EqualFunc(as, parts, func(a, p string) bool { return a == p || strings.HasPrefix(p, "{") })
		})
		if methods["get"] != nil && strings.HasPrefix(path, "/api/v1/") && !measured {
			fmt.Println("not measured: GET", path)
		}
	}
	return nil
}

// copyPostgres opens an engine on a new database of PostgreSQL.
func copyPostgres(ctx context.Context, _ config, parts ...holdfast.Part) (*copier, func(), error) {
	address, drop, err := pgtest.Database(ctx, pgtest.Options{})
	if err != nil {
		return nil, nil, err
	}
	k := postgresCopier
	if k.hf, err = holdfast.Open(ctx, postgres.URL(address), holdfast.Config{}, parts...); err != nil {
		drop()
		return nil, nil, err
	}
	return &k, func() { _ = k.hf.Close(); drop() }, nil
}

// copySQLite opens an engine on a new file.
func copySQLite(ctx context.Context, c config, parts ...holdfast.Part) (*copier, func(), error) {
	dir, err := os.MkdirTemp(c.dir, ".bench-")
	if err != nil {
		return nil, nil, err
	}
	k := sqliteCopier
	if k.hf, err = holdfast.Open(ctx, sqlite.File(filepath.Join(dir, "bench.db")), holdfast.Config{}, parts...); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &k, func() { _ = k.hf.Close(); _ = os.RemoveAll(dir) }, nil
}
