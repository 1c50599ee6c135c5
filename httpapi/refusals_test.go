package httpapi_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/wire"
)

// secretMark is in all data of the workspace theirs, and in its name.
const (
	secretMark = "zqsesamezq"
	theirs     = "ws-" + secretMark
)

// matrix makes every kind of request that must be refused, on every route. It calls the handler
// directly, because an HTTP client would not send some of them.
type matrix struct {
	*testAPI
	rand   *rand.Rand
	ids    func(httpapi.Route) func(string) string // ids of resources of theirs
	routes []httpapi.Route
	cases  int
}

// testRequest is one request.
type testRequest struct {
	route  httpapi.Route
	what   string
	query  string
	header http.Header
}

func (a testRequest) String() string { return a.what + ", " + a.route.Method + " " + a.route.Path }

// answer makes a request, and fails if the response reveals anything of theirs or is a server
// error.
func (m *matrix) answer(a testRequest) *httptest.ResponseRecorder {
	m.t.Helper()
	m.cases++
	r := httptest.NewRequest(a.route.Method, "/api/v1/"+pathOf(a.route, m.ids(a.route)), nil)
	r.URL.RawQuery = a.query
	if body := exampleBodies[a.route.ID]; body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			m.t.Fatal(err)
		}
		r = httptest.NewRequest(a.route.Method, r.URL.String(), bytes.NewReader(raw))
		r.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(r.Header, a.header)
	w := httptest.NewRecorder()
	m.api.ServeHTTP(w, r)
	if w.Code >= 500 {
		m.t.Errorf("%s: got status %d %s", a, w.Code, w.Body)
	}
	if strings.Contains(w.Body.String()+fmt.Sprint(w.Header()), secretMark) {
		m.t.Errorf("%s reveals another workspace: %v %s", a, w.Header(), w.Body)
	}
	return w
}

// refusal returns the text of an error response, without the parts that vary. It fails on another
// status or code.
func (m *matrix) refusal(a testRequest, status int, code fault.Code) string {
	m.t.Helper()
	w := m.answer(a)
	var p wire.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != status || p.Code != code || w.Header().Get("Content-Type") != wire.ProblemType {
		m.t.Errorf("%s: got status %d %s, want %d %s", a, w.Code, w.Body, status, code)
	}
	return requestIDs.ReplaceAllString(w.Body.String(), "") + w.Header().Get("WWW-Authenticate")
}

// stored returns the rows of the tables, of all workspaces or of one. Refused steps are logged by
// design, so they are left out.
func (m *matrix) stored(workspace string) map[string][]string {
	m.t.Helper()
	all, undo := make(map[string][]string), errors.New("undo") // rolled back, so that it leaves no commit marker
	err := m.engine.Update(context.Background(), func(ctx context.Context, tx holdfast.Tx) error {
		read := onPostgres
		if strings.HasSuffix(m.t.Name(), "/sqlite") {
			read = onSQLite
		}
		return cmp.Or(read(ctx, tx, func(table, of, row string) {
			if table != "attempt" && table != "clock" && (workspace == "" || workspace == of) {
				all[table] = append(all[table], row)
			}
		}), undo)
	})
	if err != undo || len(all) < 10 {
		m.t.Fatal(len(all), err)
	}
	return all
}

// onPostgres reports every row of every table, with its workspace.
func onPostgres(ctx context.Context, tx holdfast.Tx, tell func(table, workspace, row string)) error {
	var all string
	err := postgres.Raw(tx).QueryRow(ctx, `SELECT string_agg(format('SELECT %L, coalesce(to_jsonb(x) ->> ''workspace'', ''''), x::text FROM holdfast.%I x', relname, relname), ' UNION ALL ')
		FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace AND relkind IN ('r', 'p')`).Scan(&all)
	if err != nil {
		return err
	}
	rows, err := postgres.Raw(tx).Query(ctx, all)
	if err != nil {
		return err
	}
	var table, workspace, row string
	_, err = pgx.ForEachRow(rows, []any{&table, &workspace, &row}, func() error { tell(table, workspace, row); return nil })
	return err
}

// onSQLite reports every row of every table, with its workspace.
func onSQLite(ctx context.Context, tx holdfast.Tx, tell func(table, workspace, row string)) error {
	db := sqlite.Raw(tx)
	var all string
	err := db.QueryRowContext(ctx, `SELECT group_concat('SELECT ''' || substr(name, 10) || ''' AS t, json_object(' || columns || ') AS r FROM ' || name, ' UNION ALL ')
		FROM (SELECT m.name, group_concat('''' || c.name || ''', ' || iif(c.type = 'BLOB', 'hex("' || c.name || '")', '"' || c.name || '"')) AS columns
		        FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name LIKE 'holdfast_%' GROUP BY m.name)`).Scan(&all)
	if err != nil {
		return err
	}
	rows, err := db.QueryContext(ctx, `SELECT t, coalesce(r ->> 'workspace', ''), r FROM (`+all+`)`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var table, workspace, row string
		if err := rows.Scan(&table, &workspace, &row); err != nil {
			return err
		}
		tell(table, workspace, row)
	}
	return rows.Err()
}

// unchanged runs a part of the matrix, and fails if it stores anything.
func (m *matrix) unchanged(part, workspace string, f func()) {
	m.t.Helper()
	before, n := m.stored(workspace), m.cases
	f()
	after := m.stored(workspace)
	if d := differences(before, after); d != "" {
		m.t.Errorf("%s: %s", part, d)
	}
	m.t.Logf("%s: %d cases", part, m.cases-n)
}

// differences returns the rows that are in only one of two states.
func differences(before, after map[string][]string) string {
	var all strings.Builder
	for table := range after {
		for _, row := range after[table] {
			if !slices.Contains(before[table], row) {
				fmt.Fprintf(&all, "\n%s has %.300s", table, row)
			}
		}
	}
	for table := range before {
		for _, row := range before[table] {
			if !slices.Contains(after[table], row) {
				fmt.Fprintf(&all, "\n%s had %.300s", table, row)
			}
		}
	}
	return all.String()
}

// furnish creates one of everything in theirs, under the names of the examples, with the mark in
// it.
func (m *matrix) furnish() {
	m.t.Helper()
	key, text := m.newKey(theirs, keys.Admin, 0)
	us, mark, day := m.as(text), json.RawMessage(`{"mark":"`+secretMark+`"}`), wire.Millis(24*time.Hour/time.Millisecond) // leases last longer than the test
	make := func(status int, method, path string, body, into any) {
		m.t.Helper()
		us.want(us.ask(method, path, body, into), status, "")
	}
	var claim wire.Claimed
	var hook wire.CreatedWebhook
	var asked wire.List[wire.Approval]
	make(201, "POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("nobodys"), Data: mark}, nil)
	make(201, "POST", "lifecycles/invoice/entities/nobodys/claims", wire.NewClaim{StepKey: "close", Requester: "admin", LeaseMs: day}, &claim)
	make(201, "PUT", "reactions/nobodys", wire.PutReaction{Events: []string{"*", secretMark}}, nil)
	for _, name := range []string{"nobodys", "s"} {
		make(201, "POST", "streams/"+name+"/events", wire.Append{Events: []wire.NewEvent{{Name: "n", Data: mark}}}, nil)
	}
	make(201, "POST", "webhooks", wire.NewWebhook{URL: "https://example.com/" + secretMark}, &hook)
	make(201, "POST", "workflow-definitions", `{"name":"nobodys","version":"1","steps":[{"name":"may","type":"approval","prompt":"`+secretMark+`"}]}`, nil)
	ran := us.start("nobodys@1", string(mark))
	make(200, "GET", "approvals", nil, &asked)
	make(200, "PATCH", "scopes/nobodys/nobodys", mark, nil)
	make(200, "PATCH", "scopes/nobodys/nobodys", `{"nobodys":{"nobodys":"`+secretMark+`"}}`, nil)
	for _, name := range []string{"nobodys", "w"} {
		make(200, "PUT", "wallets/"+name, wire.PutWallet{}, nil)
		make(200, "POST", "wallets/"+name+"/credit", wire.Credit{Points: 9, Reference: secretMark}, nil)
	}
	for _, name := range []string{"nobodys", "h"} {
		make(201, "PUT", "handlers/"+name, wire.PutHandler{Kind: "worker"}, nil)
	}
	make(201, "POST", "batches", wire.NewBatch{ID: new("nobodys"), Wallet: "w", Handler: "nobodys", Items: []wire.NewItem{{Key: "a", Cost: new(int64(1)), Input: mark}, {Key: "b", Cost: new(int64(1)), Input: mark}}}, nil)
	var taken wire.Tasks
	make(200, "POST", "tasks/claim", wire.ClaimTasks{Worker: "w1", Handlers: []string{"nobodys"}, Limit: 1, LeaseMs: day}, &taken)
	m.ids = func(r httpapi.Route) func(string) string {
		first, _, _ := strings.Cut(r.Path, "/")
		id := map[string]string{"keys": key.ID, "webhooks": hook.ID, "workflow-definitions": "nobodys@1", "workflow-runs": ran.ID, "approvals": asked.Items[0].ID,
			"operations": claim.Entity.Claim.Operation, "tasks": taken.Tasks[0].ID}[first]
		return func(name string) string {
			switch {
			case name == "id" && id != "":
				return id
			case name == "token":
				return claim.Claim.Token
			}
			return unknownIDs(r)(name)
		}
	}
	m.shown(text)
}

// shown checks that the mark is visible to keys that may see it: otherwise its absence would prove
// nothing.
func (m *matrix) shown(text string) {
	m.t.Helper()
	n, us := 0, m.as(text)
	for _, r := range m.routes {
		if r.Method == "GET" && strings.Contains(textOf(us.example(r, m.ids(r))), secretMark) {
			n++
		}
	}
	if n < 15 {
		m.t.Errorf("only %d routes return data of the other workspace, want at least 15", n)
	}
}

// badKeys returns all kinds of invalid keys of a workspace and a role.
func (m *matrix) badKeys(workspace string, role keys.Role) (all []testRequest) {
	m.t.Helper()
	ctx := holdfast.InWorkspace(context.Background(), workspace)
	_, good := m.newKey(workspace, role, 0)
	_, other := m.newKey(workspace, role, 0)
	_, expired := m.newKey(workspace, role, time.Second)
	gone, revoked := m.newKey(workspace, role, 0)
	old, rotated := m.newKey(workspace, role, 0)
	if _, err := keys.Revoke(ctx, engine.Of(m.engine), gone.ID, "test"); err != nil {
		m.t.Fatal(err)
	}
	if _, _, err := keys.Rotate(ctx, engine.Of(m.engine), old.ID, 0, "test"); err != nil {
		m.t.Fatal(err)
	}
	add := func(what, query string, headers ...string) {
		h := make(http.Header)
		for i := 0; i < len(headers); i += 2 {
			h.Add(headers[i], headers[i+1])
		}
		all = append(all, testRequest{what: fmt.Sprintf("%s, %s of %s", what, role, workspace), query: query, header: h})
	}
	half := len(good) / 2
	for what, text := range map[string]string{
		"empty": "", "malformed": "hf_nonsense", "cut off": good[:len(good)-1], "longer": good + "0", "capitals": strings.ToUpper(good), "a capital": good[:half] + "A" + good[half+1:],
		"unknown": "hf_" + strings.Repeat("0", 26) + "_" + strings.Repeat("0", 52), "wrong secret": good[:len(good)-52] + other[len(other)-52:], "expired": expired, "revoked": revoked,
		"rotated": rotated, "a NUL": good[:half] + "\x00" + good[half:], "a line": good[:half] + "\r\n" + good[half:], "a space": good[:half] + " " + good[half:],
		"no UTF-8": good[:half] + "\xff" + good[half+1:], "very long": strings.Repeat(good, 1000), "two in one": good + "," + good,
	} {
		add(what, "", "Authorization", "Bearer "+text)
		add(what+" elsewhere", "", "X-Api-Key", text)
	}
	add("missing", "")
	add("no scheme", "", "Authorization", good)
	add("another scheme", "", "Authorization", "Token "+good)
	add("basic", "", "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(good+":"+good)))
	add("two bearers", "", "Authorization", "Bearer "+good, "Authorization", "Bearer "+good)
	add("two others", "", "X-Api-Key", good, "X-Api-Key", other)
	add("two", "", "Authorization", "Bearer "+good, "X-Api-Key", good)
	add("good and bad", "", "Authorization", "Bearer "+good, "X-Api-Key", "")
	add("in the query", "key="+good+"&api_key="+good+"&access_token="+good)
	add("in a cookie", "", "Cookie", "key="+good+"; Authorization="+good)
	for what, text := range m.badSessions(workspace, role) {
		add(what, "", "Cookie", "holdfast="+text)
	}
	add("two sessions", "", "Cookie", "holdfast="+m.session(workspace, role)+"; holdfast="+m.session(workspace, role))
	add("a session of HTTPS", "", "Cookie", "__Host-holdfast="+m.session(workspace, role))
	add("a session of HTTP", "", "Cookie", "holdfast="+m.session(workspace, role), "X-Forwarded-Proto", "https")
	add("a session as a key", "", "Authorization", "Bearer "+m.session(workspace, role))
	add("a key as a session", "", "Cookie", "holdfast="+good)
	add("a session and a bad key", "", "Cookie", "holdfast="+m.session(workspace, role), "Authorization", "Bearer x")
	add("of a proxy", "", "Proxy-Authorization", "Bearer "+good, "X-Forwarded-User", "admin")
	slices.SortFunc(all, func(a, b testRequest) int { return strings.Compare(a.what, b.what) }) // only the seed chooses
	return all
}

// TestTheMatrixOfRefusals verifies that a caller without the right to a route learns nothing and
// changes nothing: on every route, with every kind of bad key of every role, with a valid key of a
// role that is not permitted, and with a key of another workspace, whether it names the workspace
// or its resources. All bad keys get the same response. No response is a 5xx or contains anything
// of the other workspace, and no refusal is stored.
func TestTheMatrixOfRefusals(t *testing.T) {
	t.Parallel()
	eachTestAPI(t, httpapi.Options{SecretKeys: sealing}, func(t *testing.T, d *testAPI) {
		m := &matrix{testAPI: d, rand: testlevel.Rand(t), routes: d.api.Routes()}
		bad, good := make(map[keys.Role][]testRequest), make(map[string]map[keys.Role]testRequest)
		for _, role := range allRoles {
			bad[role] = m.badKeys(theirs, role)
		}
		for _, space := range []string{"ours", theirs} {
			good[space] = make(map[keys.Role]testRequest)
			for _, role := range allRoles {
				_, text := m.newKey(space, role, 0)
				good[space][role] = testRequest{what: string(role) + " of " + space, header: http.Header{"Authorization": {"Bearer " + text}}}
			}
		}
		holdfasttest.Advance(t, d.engine, time.Minute)
		m.furnish()
		us := d.as(strings.TrimPrefix(good["ours"][keys.Admin].header.Get("Authorization"), "Bearer "))
		us.want(us.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new("i")}, nil), 201, "") // rows that the first use creates exist then: a lifecycle, and the feed
		us.want(us.ask("POST", "lifecycles/invoice/entities/i/claims", exampleBodies["claimStep"], nil), 201, "")
		us.want(us.ask("GET", "feed", nil, nil), 200, "")
		us.want(d.ask("GET", "keys", nil, nil, "X-Api-Key", us.key), 200, "")
		us.want(d.ask("GET", "keys", nil, nil, "Authorization", "bearer "+us.key), 200, "")
		m.unchanged("bad keys", "", func() { m.strangers(bad) })
		m.unchanged("roles", "", func() { m.roles(good[theirs]) })
		m.unchanged("workspaces by name", "", func() { m.named(good["ours"]) })
		m.unchanged("workspaces by what is in them", theirs, func() { m.inside(good["ours"]) })
		t.Logf("%d cases, seed %d", m.cases, testlevel.Seed())
	}, invoices(nil))
}

// some returns the roles to test: at level test one of oneIn cases, chosen by the seed.
func (m *matrix) some(oneIn int) []keys.Role {
	if m.rand.IntN(testlevel.Pick(oneIn, 1, 1)) != 0 {
		return nil
	}
	i := m.rand.IntN(len(allRoles))
	return testlevel.Pick(allRoles[i:i+1], allRoles, allRoles)
}

// with returns a request for a route with the same headers and some more.
func (a testRequest) with(r httpapi.Route, headers ...string) testRequest {
	a.route, a.header = r, a.header.Clone()
	for i := 0; i < len(headers); i += 2 {
		a.what += ", " + headers[i]
		a.header.Set(headers[i], headers[i+1])
	}
	return a
}

// strangers makes requests without a valid key.
func (m *matrix) strangers(bad map[keys.Role][]testRequest) {
	m.t.Helper()
	var told string
	for _, r := range append(slices.Clone(m.routes), httpapi.Route{Method: "GET", Path: "nothing"}, httpapi.Route{Method: "BREW", Path: "events"}) {
		for i := range bad[keys.Admin] {
			for _, role := range m.some(4) {
				a := bad[role][i].with(r)
				if m.rand.IntN(2) == 0 {
					a = a.with(r, "Accept", "text/event-stream", "Idempotency-Key", "k", "X-Holdfast-Workspace", theirs)
				}
				if r.ID == "deleteSession" && a.header.Get("Authorization")+a.header.Get("X-Api-Key") == "" {
					continue // it says of every session that it has ended
				}
				text := m.refusal(a, 401, fault.Auth)
				if told == "" {
					told = text
				}
				if text != told || !strings.Contains(text, "Bearer") {
					m.t.Errorf("%s: got %s, want %s, as for other invalid keys", a, text, told)
				}
			}
		}
	}
}

// roles makes requests with roles that are not permitted, with and without an Idempotency-Key.
func (m *matrix) roles(good map[keys.Role]testRequest) {
	m.t.Helper()
	for _, r := range m.routes {
		for _, role := range allRoles {
			if !r.May(role) {
				m.refusal(good[role].with(r), 403, fault.Forbidden)
				m.refusal(good[role].with(r, "Idempotency-Key", "k"), 403, fault.Forbidden)
			}
		}
	}
}

// named makes requests with a valid key that name another workspace. An unknown workspace must get
// the same response.
func (m *matrix) named(good map[keys.Role]testRequest) {
	m.t.Helper()
	for _, r := range m.routes {
		for _, role := range m.some(1) {
			var told []string
			for _, space := range []string{theirs, "nobodys", strings.ToUpper(theirs), "default", "OURS", "ours,ours", "\x00", " "} {
				told = append(told, m.refusal(good[role].with(r, "X-Holdfast-Workspace", space), 403, fault.Forbidden))
			}
			if len(slices.Compact(told)) != 1 {
				m.t.Errorf("%s: responses differ: %q", r.ID, told)
			}
		}
	}
}

// inside makes requests with a valid key for resources of another workspace. A refusal must store
// nothing in its own workspace either.
func (m *matrix) inside(good map[keys.Role]testRequest) {
	m.t.Helper()
	before := m.stored("")
	for _, r := range slices.Backward(m.routes) { // routes that create something come first in the table
		if r.ID == "runMaintenance" { // the janitor, which sweeps all workspaces at any time
			continue
		}
		for _, role := range m.some(1) {
			w := m.answer(good[role].with(r))
			if w.Code == 401 || r.May(role) == (w.Code == 403) && r.ID != "createWorkspace" {
				m.t.Errorf("role %s, %s: got status %d %s", role, r.ID, w.Code, w.Body)
			}
			if r.Method == "GET" {
				continue
			}
			after := m.stored("")
			if d := differences(before, after); w.Code >= 400 && d != "" {
				m.t.Errorf("role %s, %s: got status %d, but data changed:%s", role, r.ID, w.Code, d)
			}
			before = after
		}
	}
}
