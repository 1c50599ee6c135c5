package storetest

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/run"
	"github.com/holdfast-go/holdfast/sqlite"
)

// scene calls a verb that has a fast form, with calls that the fast form serves and calls that it
// leaves to the general one, and records each result. Rows that contain skip are not compared.
type scene func(t *testing.T, p play) (results []string, skip string)

// play is the environment of a scene.
type play struct {
	hf     *holdfast.Engine
	rows   *sql.DB
	prefix string // of table names
}

// change changes rows behind the engine's back, as another program would: {…} is a table.
func (p play) change(t *testing.T, text string) {
	t.Helper()
	r, err := p.rows.ExecContext(t.Context(), table.ReplaceAllString(text, p.prefix+"$1"))
	if err != nil {
		t.Fatal(err)
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("%s: no row was changed: %v", text, err)
	}
}

// declared changes the registry elsewhere, so that the engine's revision is stale.
func (p play) declared(t *testing.T) {
	t.Helper()
	_, err := p.rows.ExecContext(t.Context(), table.ReplaceAllString("DELETE FROM {registry}", p.prefix+"$1"))
	if err != nil {
		t.Fatal(err)
	}
	p.change(t, "INSERT INTO {registry} (shard, workspace, revision) SELECT shard, name, 100 FROM {workspace}")
}

var table = regexp.MustCompile(`\{(\w+)\}`)

var scenes = map[string]scene{
	"events.append":             appendScene,
	"entities.create":           createScene,
	"entities.transition":       transitionScene,
	"scopes.put":                putScene,
	"scopes.edit":               editScene,
	"scopes.increment":          editScene,
	"runs.apply_plan":           moveScene,
	"runs.finish_step":          plainScene(false),
	"runs.start_at_step":        plainScene(false),
	"runs.finish_opaque_step":   plainScene(false),
	"runs.finish_steps":         togetherScene(true, true),
	"runs.start_at_opaque_step": plainScene(false),
	"batches.take":              itemsScene,
	"batches.settle_items":      itemsScene,
}

// TestFastFormsDoWhatTheGeneralOnesDo verifies of every fast form of both databases that the same
// calls have the same results, and leave the same rows, with it and without it.
func TestFastFormsDoWhatTheGeneralOnesDo(t *testing.T) {
	for name, files := range map[string]func() (store.SQLFiles, error){"sqlite": store.DatabaseOf(sqlite.File("")).Files, "postgres": store.DatabaseOf(postgres.URL("")).Files} {
		all, err := files()
		if err != nil {
			t.Fatal(err)
		}
		for file := range all {
			verb, fast := strings.CutSuffix(file, ".fast")
			if !fast {
				continue
			}
			scene := scenes[verb]
			if scene == nil {
				t.Errorf("%s: no scene calls %s: add one", name, file)
				continue
			}
			t.Run(name+"/"+verb, func(t *testing.T) {
				t.Parallel()
				was, is := playScene(t, name, true, scene), playScene(t, name, false, scene)
				for i := range max(len(was), len(is)) {
					if i >= len(was) || i >= len(is) || was[i] != is[i] {
						t.Fatalf("with the fast form:\n  %s\nwithout it:\n  %s", slices.Concat(is, make([]string, len(was)))[i], slices.Concat(was, make([]string, len(is)))[i])
					}
				}
				if len(is) < 8 {
					t.Errorf("too few results to compare: %q", is)
				}
			})
		}
	}
}

// playScene plays a scene on a new database, and returns the results and the rows that it left.
func playScene(t *testing.T, name string, plain bool, scene scene) []string {
	t.Helper()
	var db holdfast.Database
	var rows *sql.DB
	prefix := "holdfast_"
	if name == "sqlite" {
		path := holdfasttest.SQLite(t)
		db, rows = sqlite.File(path), openSQLite(t, path, "_pragma=busy_timeout(10000)")
	} else {
		url := holdfasttest.PostgreSQL(t)
		config, err := pgx.ParseConfig(url)
		if err != nil {
			t.Fatal(err)
		}
		db, rows, prefix = postgres.URL(url), stdlib.OpenDB(*config), "holdfast."
		t.Cleanup(func() { _ = rows.Close() })
	}
	if plain {
		db = store.Plain(db)
	}
	results, skip := scene(t, play{holdfasttest.OpenOn(t, db, moves), rows, prefix})
	for _, table := range []string{"stream", "event", "history", "entity", "scope", "run", "step", "effect", "batch", "item", "wallet", "ledger"} {
		results = append(results, rowsOf(t, rows, prefix+table, skip)...)
	}
	return results
}

// rowsOf returns the rows of a table without values that differ in each run: of times and the name
// of the node only whether they are set; random ids are left out.
func rowsOf(t *testing.T, db *sql.DB, table, skip string) (all []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values := make([]any, len(names))
	for rows.Next() {
		into := make([]any, len(names))
		for i := range into {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		line := table
		for i, name := range names {
			switch {
			case passing.MatchString(name):
				line += fmt.Sprintf(" %s=%v", name, values[i] != nil)
			case name != "id" || !strings.HasSuffix(table, "event") && !strings.HasSuffix(table, "history"):
				line += " " + name + "=" + plainText(values[i])
			}
		}
		if skip == "" || !strings.Contains(line, skip) {
			all = append(all, randomID.ReplaceAllString(line, "ID"))
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

var (
	passing  = regexp.MustCompile(`^(.*_at|at|until|deadline|holder|key)$`)
	randomID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|run_[0-9a-f]{32}`)
)

func plainText(v any) string {
	if text, ok := v.([]byte); ok {
		v = string(text)
	}
	return fmt.Sprint(v)
}

// formatResult formats a result: its value without times, and the code of an error.
func formatResult(v any, err error) string {
	text, _ := json.Marshal(v)
	var object map[string]any
	if json.Unmarshal(text, &object) == nil {
		for name := range object {
			if strings.HasSuffix(name, "At") || name == "Until" {
				delete(object, name)
			}
		}
		text, _ = json.Marshal(object)
	}
	return fmt.Sprintf("%s %s", text, fault.CodeOf(err))
}

func version(n int64) *int64 { return &n }

func appendScene(t *testing.T, p play) (results []string, _ string) {
	add := func(stream string, want *int64, names ...string) {
		a := events.AppendArgs{Stream: stream, ExpectVersion: want}
		for i, name := range names {
			a.Events = append(a.Events, events.Event{Name: name, Data: fmt.Appendf(nil, `{"i":%d}`, i), Meta: events.Meta{Correlation: "c" + name, Actor: "me"}})
		}
		last, err := events.Append(t.Context(), engine.Of(p.hf), a)
		results = append(results, formatResult(last, err))
	}
	add("a", nil, "one")
	add("a", nil, "two", "three")
	add("a", version(2), "four")
	add("a", version(2), "stale")
	add("b", version(0), "missing")
	add("b", version(-1), "first", "second")
	add("b", version(-1), "again")
	add("b", version(1), "third")
	p.declared(t)
	add("b", version(2), "fourth")
	add("b", nil, "fifth")
	p.change(t, "UPDATE {stream} SET state = 'closed' WHERE name = 'b'")
	add("b", nil, "late")
	add("b", version(4), "late")
	return results, ""
}

func createScene(t *testing.T, p play) (results []string, _ string) {
	create := func(a entities.CreateArgs) {
		a.Lifecycle, a.ID = "door", cmp.Or(a.ID, "1")
		e, err := entities.Create(t.Context(), engine.Of(p.hf), a)
		results = append(results, formatResult(e, err))
	}
	create(entities.CreateArgs{Status: "open", Data: []byte(`{"a": 1}`)})
	create(entities.CreateArgs{Status: "shut", Data: []byte(`{"a":2}`)})
	create(entities.CreateArgs{ID: "2", Status: "shut", Data: []byte(`{}`), Meta: events.Meta{Correlation: "c", Causation: "x", Actor: "me"}})
	create(entities.CreateArgs{ID: "2", Status: "shut", Data: []byte(`{}`)})
	p.declared(t)
	create(entities.CreateArgs{ID: "3", Status: "open", Data: []byte(`{"b":[1,2]}`)})
	create(entities.CreateArgs{ID: "4", Status: "open", Data: []byte(`{}`)})
	return results, ""
}

func transitionScene(t *testing.T, p play) (results []string, _ string) {
	made, err := entities.Create(t.Context(), engine.Of(p.hf), entities.CreateArgs{Lifecycle: "door", ID: "1", Status: "open", Data: []byte(`{"a":1}`)})
	results = append(results, formatResult(made, err))
	move := func(a entities.TransitionArgs) {
		a.Lifecycle, a.Event, a.ID = "door", "moved", cmp.Or(a.ID, "1")
		e, err := entities.Transition(t.Context(), engine.Of(p.hf), a)
		results = append(results, formatResult(e, err))
	}
	for _, a := range []entities.TransitionArgs{
		{From: []string{"open"}, To: "shut"},
		{From: []string{"open"}, To: "shut"},
		{From: []string{"shut"}, To: "open", Data: []byte(`{"b":2}`), Note: []byte(`{"n":1}`)},
		{From: []string{"open"}, To: "shut", ExpectVersion: version(2), Meta: events.Meta{Correlation: "c", Causation: "x", Actor: "me"}},
		{From: []string{"shut"}, To: "open", ExpectVersion: version(2)},
		{From: []string{"shut", "open"}, To: "ajar"},
		{ID: "none", From: []string{"open"}, To: "shut"},
	} {
		move(a)
	}
	p.declared(t)
	move(entities.TransitionArgs{ID: "1", From: []string{"ajar"}, To: "shut"})
	p.change(t, "UPDATE {entity} SET phase = 'held', epoch = 1, operation = 'op', revert = 'shut', step = 's', requester = 'r', holder = 'h', until = updated_at, claimed_at = updated_at WHERE id = '1'")
	move(entities.TransitionArgs{ID: "1", From: []string{"shut"}, To: "open"})
	move(entities.TransitionArgs{ID: "1", From: []string{"shut"}, To: "open", ExpectVersion: version(6)})
	return results, ""
}

func putScene(t *testing.T, p play) (results []string, _ string) {
	put := func(a scopestore.PutArgs) {
		a.Kind, a.ID = "k", cmp.Or(a.ID, "1")
		s, err := scopestore.Put(t.Context(), engine.Of(p.hf), a)
		results = append(results, formatResult(s, err))
	}
	for _, a := range []scopestore.PutArgs{
		{State: []byte(`{"n":1}`)},
		{State: []byte(`{"n":2}`)},
		{State: []byte(`{"n":3}`), ExpectVersion: version(1), Meta: events.Meta{Actor: "me"}},
		{State: []byte(`{"n":4}`), ExpectVersion: version(1)},
		{State: []byte(`{"n":5}`), ExpectVersion: version(-1)},
		{ID: "2", State: []byte(`{}`), ExpectVersion: version(0)},
		{ID: "2", State: []byte(`{}`), ExpectVersion: version(-1)},
		{ID: "2", State: []byte(`{"x":"y"}`)},
		{ID: "2", State: []byte(`{"x":"z"}`), TTL: time.Hour},
		{ID: "2", State: []byte(`{}`)},
	} {
		put(a)
	}
	p.declared(t)
	put(scopestore.PutArgs{State: []byte(`{"n":6}`), TTL: time.Hour})
	p.change(t, "UPDATE {scope} SET expires_at = updated_at WHERE id = '1'")
	put(scopestore.PutArgs{State: []byte(`{"n":7}`), ExpectVersion: version(3)})
	put(scopestore.PutArgs{State: []byte(`{"n":8}`)})
	return results, ""
}

func editScene(t *testing.T, p play) (results []string, _ string) {
	edit := func(want *int64, op scopestore.Op, err error) {
		if err != nil {
			t.Fatal(err)
		}
		s, err := scopestore.Edit(t.Context(), engine.Of(p.hf), scopestore.EditArgs{Kind: "k", ID: "1", Op: op, ExpectVersion: want, Meta: events.Meta{Correlation: "c"}})
		results = append(results, formatResult(s, err))
	}
	inc := func(want *int64, field string, by int64) {
		op, err := scopestore.Inc(field, by)
		edit(want, op, err)
	}
	inc(nil, "n", 1)
	inc(nil, "n", 41)
	inc(nil, "n", 0)
	inc(nil, "other", -3)
	inc(version(2), "n", 1)
	inc(version(2), "n", 1)
	op, err := scopestore.Patch([]byte(`{"text":"x","big":9223372036854775807,"half":1.5}`))
	edit(nil, op, err)
	inc(nil, "text", 1)
	inc(nil, "big", 1)
	inc(nil, "half", 1)
	op, err = scopestore.Push("list", []byte(`"a"`))
	edit(nil, op, err)
	inc(nil, `we"ird`, 7)
	inc(nil, `we"ird`, 1)
	p.declared(t)
	inc(nil, "n", 5)
	p.change(t, "UPDATE {scope} SET expires_at = updated_at WHERE id = '1'")
	inc(version(8), "n", 5)
	inc(nil, "n", 5)
	return results, ""
}

// moves is a run whose steps cover what a move of a run can have: an output, a patch of the state,
// a condition, a retry, an effect and an end.
var moves = run.Define("moves", "1",
	run.Task("first", func(ctx context.Context, n int) (map[string]int, error) {
		return map[string]int{"n": n}, run.Patch(ctx, map[string]any{"n": n})
	}, run.Idempotent()),
	run.If("choose", "state.n > 1", "fails", "last"),
	run.Task("fails", func(context.Context, any) (int, error) { return 0, errors.New("it fails") }, run.Idempotent(), run.WithRetry(holdfast.RetryPolicy{MaxAttempts: 2, Backoff: time.Millisecond})),
	run.Task("last", func(ctx context.Context, _ any) (string, error) {
		return holdfast.Effect(ctx, "call", func(context.Context, string) (string, error) { return "over", nil })
	}, run.Journaled()))

func moveScene(t *testing.T, p play) (results []string, first string) {
	defer testkit.Run(t, p.hf)()
	for n := range 4 {
		started, _, err := moves.Start(t.Context(), p.hf, n)
		if err != nil {
			t.Fatal(err)
		}
		r, err := run.Await(t.Context(), p.hf, started.ID)
		if first == "" { // it may have started before the engine ran
			first = started.ID
			continue
		}
		results = append(results, string(r.Status)+" "+string(r.Output)+" "+r.Error+" "+fmt.Sprint(fault.CodeOf(err)))
	}
	return results, first
}
