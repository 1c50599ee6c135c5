package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

// What retention costs the writers is measured with two databases of the same kind: one deletes, the other keeps everything. They take turns,
// one minute each, at a fixed rate of requests: starts of runs in Go, all others over HTTP. After every second minute of its own, the clock of the first moves by its
// retention: so what was written four minutes ago is gone. A latency counts from the moment at which its request was due.

const (
	retainRate    = 100 // requests a second
	retainCallers = 32
	retained      = 24 * time.Hour // the longest that cannot be configured: responses to idempotency keys
	retainSlice   = time.Minute
	retainObjects = 500 // entities and scopes that change
)

// charges is a lifecycle whose step calls another system, through an effect.
type charge struct {
	Times int `json:"times"`
}

func newCharges() *lifecycle.Lifecycle[charge] {
	return lifecycle.MustParse[charge]([]byte(`
workflow: charge
owning_module: bench
status_types: [open, charging, charged, gone]
initial_status: open
janitor: standard
steps:
  - {step_id: 10, step_key: charge, status: open, successful_claim_state: {admin: [charging, open]}, successful_state: {admin: charged}, action: {admin: Charge}}
  - {step_id: 20, step_key: reopen, status: charged, successful_state: {admin: open}}
  - {step_id: 30, step_key: drop, status: charged, successful_state: {admin: gone}}
`)).Action("Charge", func(ctx context.Context, a *lifecycle.Act[charge]) error {
		_, err := holdfast.Effect(ctx, "charge", func(context.Context, string) (string, error) { return "ok", nil })
		return err
	}, lifecycle.Journaled())
}

// retainLoad is one of the two databases, with its load.
type retainLoad struct {
	name    string
	hf      *holdfast.Engine
	job     *run.Definition
	c       *client.Client
	stop    func()
	count   func(context.Context) (map[string]int64, error) // rows by table
	deletes bool

	sent      atomic.Int64
	mu        sync.Mutex
	latencies []time.Duration
	minute    []time.Duration
	handled   map[string]int // events of runs that the reaction has handled, by stream and version
	keys      []string       // of runs that exist or whose keys do, in the order of their starts
	passed    int            // how many of them were there at the last pass
	passes    int
	runs      map[string]string
	status    map[string]bool // entities that are charged
	failed    []error
}

// measureRetention prints, for both databases, how many rows each table has after each period, and the latency of the writers with and
// without deletion.
func measureRetention(ctx context.Context, c config) error {
	for _, store := range []string{"sqlite", "postgres"} {
		if !c.run.MatchString(cellName(store, "retain", retainRate)) {
			continue
		}
		if err := measureRetentionOn(ctx, c, store); err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
	}
	return nil
}

func measureRetentionOn(ctx context.Context, c config, store string) error {
	var both [2]*retainLoad // without deletion, with it
	for i := range both {
		l, err := openRetain(ctx, c, store, i == 1)
		if err != nil {
			return err
		}
		defer l.stop()
		both[i] = l
	}
	pruned := both[1]
	var sizes []map[string]int64
	var ratios []float64
	minutes := int(c.retain / retainSlice)
	for minute := range minutes {
		var p99 [2]time.Duration
		for i := range both {
			at := i ^ minute%2 // each comes first in turn
			if err := both[at].slice(ctx, retainSlice); err != nil {
				return err
			}
			p99[at] = percentile(both[at].minute, 0.99)
		}
		ratios = append(ratios, float64(p99[1])/float64(p99[0]))
		fmt.Printf("%s/retain: minute %d: p99 %s without deletion, %s with it\n", store, minute+1, p99[0].Round(time.Microsecond), p99[1].Round(time.Microsecond))
		if minute%2 == 1 {
			size, err := pruned.count(ctx)
			if err != nil {
				return err
			}
			sizes = append(sizes, size)
			if err := pruned.pass(ctx); err != nil {
				return err
			}
		}
	}
	printSizes(store, sizes)
	for i, l := range both {
		fmt.Printf("%s/retain: %s: %d requests, p50 %s, p99 %s\n", store, [...]string{"without deletion", "with deletion"}[i], len(l.latencies),
			percentile(l.latencies, 0.5).Round(time.Microsecond), percentile(l.latencies, 0.99).Round(time.Microsecond))
	}
	slices.Sort(ratios)
	low, high := interval(ratios)
	fmt.Printf("%s/retain: p99 with deletion by that without: %.2f over all; by minute: median %.2f (95 %% interval %.2f to %.2f)\n", store,
		float64(percentile(pruned.latencies, 0.99))/float64(percentile(both[0].latencies, 0.99)), ratios[len(ratios)/2], low, high)
	return errors.Join(both[0].verify(ctx), pruned.verify(ctx))
}

func percentile(all []time.Duration, p float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)]
}

func openRetain(ctx context.Context, c config, store string, deletes bool) (*retainLoad, error) {
	l := &retainLoad{name: store, deletes: deletes, handled: make(map[string]int), runs: make(map[string]string), status: make(map[string]bool)}
	db, drop, err := l.database(ctx, c, store)
	if err != nil {
		return nil, err
	}
	l.job = run.Define("job", "1", run.Task("work", func(context.Context, any) (any, error) {
		return map[string]string{"result": strings.Repeat("x", 200)}, nil
	}, run.Idempotent()))
	kind := batch.Define("print", func(context.Context, *batch.Item[map[string]string]) (string, error) { return "ok", nil }, batch.Options{MaxConcurrency: 4})
	follow := stream.React("follow", stream.Select{Pattern: `^\$run/`, Source: stream.Histories}, func(_ context.Context, d *stream.Delivery) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.handled[fmt.Sprint(d.Stream, " ", d.Version)]++
		return nil
	}, stream.Options{})
	parts := []holdfast.Part{l.job, kind, follow, newCharges()}
	var config holdfast.Config
	if deletes {
		config.HistoryRetention = retained
		parts = append(parts, run.Retention(retained), run.KeyRetention(retained), batch.Retention(retained))
	}
	api := httpapi.New(httpapi.Options{NoKeys: true})
	if l.hf, err = holdfast.Open(ctx, db, config, append(parts, api)...); err != nil {
		drop()
		return nil, err
	}
	url, stop, err := listen(ctx, api)
	if err == nil {
		l.c, err = client.New(url, client.Options{})
	}
	if err == nil {
		err = l.begin(ctx)
	}
	l.stop = func() {
		if l.c != nil {
			l.c.Close()
		}
		if stop != nil {
			stop()
		}
		_ = l.hf.Close()
		drop()
	}
	if err != nil {
		l.stop()
	}
	return l, err
}

// database returns a new database, and sets the function that counts its rows.
func (l *retainLoad) database(ctx context.Context, c config, store string) (holdfast.Database, func(), error) {
	if store == "postgres" {
		url, drop, err := pgtest.Database(ctx, pgtest.Options{})
		l.count = func(ctx context.Context) (map[string]int64, error) { return countPostgres(ctx, url) }
		if err == nil {
			_, _, err = holdfast.Migrate(ctx, postgres.URL(url), holdfast.Migration{})
		}
		if err == nil { // before it is opened: an engine reads this once
			err = pgtest.Exec(ctx, url, `UPDATE holdfast.clock SET movable = true`)
		}
		return postgres.URL(url), drop, err
	}
	dir, err := os.MkdirTemp(c.dir, ".bench-")
	path := filepath.Join(dir, "bench.db")
	l.count = func(ctx context.Context) (map[string]int64, error) { return countSQLite(ctx, path) }
	return sqlite.File(path), func() { _ = os.RemoveAll(dir) }, err
}

func countPostgres(ctx context.Context, url string) (map[string]int64, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, _ := conn.Query(ctx, "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind = 'r'")
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	all := make(map[string]int64)
	for _, name := range names {
		var n, bytes int64
		if err == nil {
			err = conn.QueryRow(ctx, "SELECT count(*), pg_total_relation_size('holdfast."+name+"') FROM holdfast."+name).Scan(&n, &bytes)
		}
		all[name], all[name+" (KB)"] = n, bytes/1024
	}
	return all, err
}

func countSQLite(ctx context.Context, path string) (map[string]int64, error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'holdfast_%'")
	if err != nil {
		return nil, err
	}
	var names []string
	for rows.Next() {
		var name string
		if err = rows.Scan(&name); err != nil {
			break
		}
		names = append(names, name)
	}
	err = errors.Join(err, rows.Err(), rows.Close())
	all := make(map[string]int64)
	for _, name := range names {
		var n int64
		if err == nil {
			err = db.QueryRowContext(ctx, "SELECT count(*) FROM "+name).Scan(&n)
		}
		all[strings.TrimPrefix(name, "holdfast_")] = n
	}
	if info, failed := os.Stat(path); failed == nil {
		all["the file (KB)"] = info.Size() / 1024
	}
	return all, err
}

// begin creates the objects that the load changes.
func (l *retainLoad) begin(ctx context.Context) error {
	defer background(ctx, l.hf)()
	_, err := l.c.PutWallet(ctx, "w", wire.PutWallet{AllowNegative: true})
	for i := range retainObjects {
		if err == nil {
			_, err = l.c.CreateEntity(ctx, "charge", wire.NewEntity{ID: new(fmt.Sprint("c", i)), Data: json.RawMessage(`{}`)})
		}
	}
	return err
}

// slice sends requests at the rate, with the engine running. It ends when no work is left.
func (l *retainLoad) slice(ctx context.Context, long time.Duration) error {
	stop := background(ctx, l.hf)
	defer stop()
	l.minute = nil
	due := make(chan time.Time, retainRate*int(long/time.Second))
	var callers sync.WaitGroup
	for range retainCallers {
		callers.Go(func() {
			for at := range due {
				l.request(ctx, at)
			}
		})
	}
	every := time.NewTicker(time.Second / retainRate)
	defer every.Stop()
	for ends := clock.Now().Add(long); clock.Now().Before(ends) && ctx.Err() == nil; {
		due <- <-every.C
	}
	close(due)
	callers.Wait()
	l.mu.Lock()
	l.latencies = append(l.latencies, l.minute...)
	err := errors.Join(append(l.failed[:min(len(l.failed), 5)], ctx.Err())...)
	l.mu.Unlock()
	if err == nil {
		err = l.settled(ctx)
	}
	return err
}

// settled waits until no run is open, and no operation.
func (l *retainLoad) settled(ctx context.Context) error {
	for {
		open, err := holdfast.Collect(run.List(ctx, l.hf, run.Filter{Status: run.Running}))
		if err != nil || len(open) == 0 {
			return err
		}
		if err := clock.Wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// request sends one request, and repeats one of twenty with its key: the response must be the same.
func (l *retainLoad) request(ctx context.Context, due time.Time) {
	n := l.sent.Add(1)
	send, key := l.choose(ctx, n), client.Key(fmt.Sprint("request-", n))
	first, err := send(key)
	l.mu.Lock()
	l.minute = append(l.minute, time.Since(due))
	l.mu.Unlock()
	if err == nil && n%20 == 0 {
		var again string
		if again, err = send(key); err == nil && again != first {
			err = fmt.Errorf("request %d was repeated: %s, first %s", n, again, first)
		}
	}
	if err != nil {
		l.mu.Lock()
		l.failed = append(l.failed, fmt.Errorf("request %d: %w", n, err))
		l.mu.Unlock()
	}
}

// choose returns the next request. Each returns what identifies its result.
func (l *retainLoad) choose(ctx context.Context, n int64) func(client.Option) (string, error) {
	switch n % 10 {
	case 0, 1, 2:
		key := fmt.Sprint("run-", n)
		return func(client.Option) (string, error) {
			r, _, err := l.job.Start(ctx, l.hf, nil, run.Key(key))
			if err == nil {
				l.mu.Lock()
				if l.runs[key] == "" {
					l.keys = append(l.keys, key)
				}
				l.runs[key] = r.ID
				l.mu.Unlock()
			}
			return r.ID, err
		}
	case 3, 4, 5:
		id := fmt.Sprint("c", n/10%retainObjects)
		l.mu.Lock()
		step := "charge"
		if l.status[id] {
			step = "reopen"
		}
		l.status[id] = !l.status[id]
		l.mu.Unlock()
		return func(o client.Option) (string, error) {
			f, err := l.c.FireStep(ctx, "charge", id, step, wire.Fire{Requester: "admin"}, o)
			if isRefusal(err) { // another request has the entity, and comes before this one
				err = nil
			}
			return f.Operation, err
		}
	case 6, 7, 8:
		id := fmt.Sprint("s", rand.IntN(retainObjects))
		return func(o client.Option) (string, error) {
			s, err := l.c.IncScope(ctx, "cart", id, wire.IncScope{Field: "n", By: new(int64(1))}, o)
			return fmt.Sprint(s.Version), err
		}
	}
	items := make([]wire.NewItem, 3)
	for i := range items {
		items[i] = wire.NewItem{Key: fmt.Sprint(i), Cost: new(int64(0)), Input: json.RawMessage(`{"page":"` + strings.Repeat("x", 200) + `"}`)}
	}
	return func(o client.Option) (string, error) {
		b, err := l.c.CreateBatch(ctx, wire.NewBatch{ID: new(fmt.Sprint("b", n)), Wallet: "w", Handler: "print", Items: items}, o)
		return b.ID, err
	}
}

func isRefusal(err error) bool {
	return errors.Is(err, holdfast.ErrClaimFailed) || errors.Is(err, holdfast.ErrInvalidTransition)
}

// pass verifies that late retries of runs that were deleted since the last pass are refused, and lets the retention pass again.
func (l *retainLoad) pass(ctx context.Context) error {
	refused, kept := 0, 0
	for i := 0; i < len(l.keys); i += max(len(l.keys)/200, 1) {
		key := l.keys[i]
		r, created, err := l.job.Start(ctx, l.hf, nil, run.Key(key))
		switch {
		case errors.Is(err, holdfast.ErrKeyExpired):
			refused++
		case err != nil:
			return err
		case created || r.ID != l.runs[key]:
			return fmt.Errorf("key %s has started run %s, before %s", key, r.ID, l.runs[key])
		default:
			kept++
		}
	}
	fmt.Printf("%s/retain: of late retries, %d were refused because the run was deleted, and %d got the run\n", l.name, refused, kept)
	if refused == 0 && l.passes > 0 {
		return errors.New("no run was deleted")
	}
	l.keys = slices.Clone(l.keys[l.passed:]) // the keys of the others are deleted next
	l.passed = len(l.keys)
	l.passes++
	return store.Shift(ctx, engine.Of(l.hf), retained)
}

// verify verifies that the reaction has handled each event of each run once, and that the database violates no invariant.
func (l *retainLoad) verify(ctx context.Context) error {
	stop := background(ctx, l.hf)
	var err error
	for wait := 0; err == nil && l.left() > 0 && wait < 600; wait++ {
		err = clock.Wait(ctx, 100*time.Millisecond)
	}
	stop()
	if err != nil {
		return err
	}
	for event, times := range l.handled {
		if times != 1 {
			return fmt.Errorf("event %s was handled %d times", event, times)
		}
	}
	if left := l.left(); left > 0 {
		return fmt.Errorf("the events of %d runs were not handled", left)
	}
	report, err := l.hf.Check(ctx)
	if err == nil && !report.Clean() {
		err = fmt.Errorf("%d violations: %v", len(report.Violations), report.Violations[0])
	}
	fmt.Printf("%s/retain: the reaction has handled %d events once, and the check found nothing (deletion %t)\n", l.name, len(l.handled), l.deletes)
	return err
}

// left returns how many runs have an event that was not handled: the first three are those of every run.
func (l *retainLoad) left() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.runs {
		for version := range 3 {
			if l.handled[fmt.Sprint("$run/", id, " ", version)] == 0 {
				n++
				break
			}
		}
	}
	return n
}

// printSizes prints the rows of the tables at the end of each period, before the time moves.
func printSizes(store string, sizes []map[string]int64) {
	names := make(map[string]bool)
	for _, size := range sizes {
		for name, n := range size {
			names[name] = names[name] || n > 100
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s/retain: rows\t", store)
	for i := range sizes {
		fmt.Fprintf(w, "minute %d\t", 2*(i+1))
	}
	fmt.Fprintln(w)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !names[name] {
			continue
		}
		fmt.Fprintf(w, "%s\t", name)
		for _, size := range sizes {
			fmt.Fprintf(w, "%d\t", size[name])
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush()
}
