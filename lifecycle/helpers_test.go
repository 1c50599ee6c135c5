package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/lifecycle"
)

// invoices is what most tests here work with: a step that is claimed, one with a
// state for failures, one with a timeout, one whose action may take only a moment,
// and two without a claim, with and without code.
const invoices = `
workflow: invoice
owning_module: billing
status_types: [open, closing, trying, hurrying, rushing, briefing, closed, failed, noted]
initial_status: open
janitor: {stuck_after: 5m}
steps:
- {step_id: 20, step_key: close, status: open, successful_claim_state: [closing, open], successful_state: closed, action: Act, validation: May}
- {step_id: 30, step_key: try, status: open, successful_claim_state: [trying, open], successful_state: closed, failed_state: failed, action: Act, validation: May}
- {step_id: 40, step_key: hurry, status: open, successful_claim_state: [hurrying, open], successful_state: closed, action: Act, timeout: 100ms}
- {step_id: 45, step_key: rush, status: open, successful_claim_state: [rushing, open], successful_state: closed, failed_state: failed, action: Act, timeout: 1ms}
- {step_id: 50, step_key: brief, status: open, successful_claim_state: [briefing, open], successful_state: closed, action: Brief}
- {step_id: 60, step_key: note, status: open, successful_state: noted, action: Act, validation: May}
- {step_id: 70, step_key: skip, status: open, successful_state: noted}
`

type body = func(context.Context, *lifecycle.Act[bill]) error

// world is a lifecycle on an engine, whose bodies a test sets by the entity's id.
type world struct {
	t   testing.TB
	db  string
	own bool // the entities are rows of the user's own table
	e   *holdfast.Engine
	l   *lifecycle.Lifecycle[bill]

	mu    sync.Mutex
	acts  map[string]body // what the action does; nothing, where there is none
	mays  map[string]body // what the validation does
	calls map[string]int  // how often the action was called
}

// onEach is [storetest.OnEach], with names that say which database it is.
func onEach(t *testing.T, f func(t *testing.T, db string)) {
	t.Helper()
	storetest.OnEach(t, func(t *testing.T, db string) { f(t, named(db)) })
}

// named returns the name of a database that is a path or a URL.
func named(db string) string {
	if strings.Contains(db, "://") {
		return db
	}
	return "sqlite:" + db
}

func databaseAt(db string) holdfast.Database {
	return holdfasttest.At(strings.TrimPrefix(db, "sqlite:"))
}

// each runs a test in a world of its own on both databases.
func each(t *testing.T, config string, f func(*testing.T, *world)) {
	t.Helper()
	onEach(t, func(t *testing.T, db string) { f(t, newWorld(t, db, config)) })
}

// everywhere runs a test as [each] does, in Holdfast's own table and in one of the
// user's.
func everywhere(t *testing.T, config string, f func(*testing.T, *world)) {
	t.Helper()
	onEach(t, func(t *testing.T, db string) { f(t, newWorld(t, db, config)) })
	t.Run("own", func(t *testing.T) {
		onEach(t, func(t *testing.T, db string) { f(t, newOwnWorld(t, db, config)) })
	})
}

func newWorld(t *testing.T, db, config string) *world {
	t.Helper()
	w := unopened(t, db, config)
	w.open()
	return w
}

// unopened is a world without an engine yet.
func unopened(t testing.TB, db, config string) *world {
	w := &world{t: t, db: db, acts: map[string]body{}, mays: map[string]body{}, calls: map[string]int{}}
	w.l = w.lifecycle(config)
	return w
}

const ownTable = `CREATE TABLE bills (nr text PRIMARY KEY, state text, rev bigint NOT NULL DEFAULT 0, cents integer NOT NULL DEFAULT 0, remark text)`

// inOwn is a config whose entities are rows of the user's own table.
func inOwn(config string) string {
	return strings.Replace(config, "janitor:", "entity_table: {name: bills, columns: {id: nr, status: state, version: rev}}\njanitor:", 1)
}

func newOwnWorld(t *testing.T, db, config string) *world {
	t.Helper()
	w := unopened(t, db, inOwn(config))
	w.own = true
	w.prepare(ownTable)
	w.open()
	return w
}

// prepare runs statements before the world's engine is opened.
func (w *world) prepare(texts ...string) {
	w.t.Helper()
	e, err := holdfast.Open(context.Background(), databaseAt(w.db), holdfast.Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		w.t.Fatalf("open: %v", err)
	}
	w.e = e
	for _, text := range texts {
		w.exec(text)
	}
	if err := e.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// lifecycle makes a lifecycle with the world's bodies.
func (w *world) lifecycle(config string) *lifecycle.Lifecycle[bill] {
	act := func(ctx context.Context, a *lifecycle.Act[bill]) error {
		w.mu.Lock()
		w.calls[a.Entity.ID]++
		f := w.acts[a.Entity.ID]
		w.mu.Unlock()
		if f == nil {
			return nil
		}
		return f(ctx, a)
	}
	l := lifecycle.MustParse[bill]([]byte(config)).Action("Act", act, lifecycle.Transactional())
	l.Action("Brief", act, lifecycle.Transactional(), lifecycle.Timeout(100*time.Millisecond))
	return l.Validation("May", func(ctx context.Context, a *lifecycle.Act[bill]) error {
		w.mu.Lock()
		f := w.mays[a.Entity.ID]
		w.mu.Unlock()
		if f == nil {
			return nil
		}
		return f(ctx, a)
	})
}

// open opens the world's engine on its database.
func (w *world) open() {
	w.t.Helper()
	w.e = w.engine(w.l)
}

// engine opens an engine on the world's database, without a log. When the test ends, the engine's check must
// find no violation and no expired claim.
func (w *world) engine(parts ...holdfast.Part) *holdfast.Engine {
	w.t.Helper()
	return w.engineWith(holdfast.Config{}, parts...)
}

func (w *world) engineWith(c holdfast.Config, parts ...holdfast.Part) *holdfast.Engine {
	w.t.Helper()
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	e, err := holdfast.Open(context.Background(), databaseAt(w.db), c, parts...)
	if err != nil {
		w.t.Fatalf("open: %v", err)
	}
	w.t.Cleanup(func() {
		report, err := e.Check(context.Background())
		if err != nil {
			w.t.Errorf("check: %v", err)
		} else if !report.Clean() {
			w.t.Errorf("the test left a database that violates invariants:\n%s", report)
		}
		if err := e.Close(); err != nil {
			w.t.Errorf("close: %v", err)
		}
	})
	return e
}

func (w *world) postgres() bool { return !strings.HasPrefix(w.db, "sqlite:") }

// act sets what the action does with an entity.
func (w *world) act(id string, f body) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acts[id] = f
}

func (w *world) may(id string, f body) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mays[id] = f
}

func (w *world) called(id string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[id]
}

func (w *world) create(ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		if w.own {
			w.exec(`INSERT INTO bills (nr, state) VALUES ($1, 'open')`, id)
			continue
		}
		if _, err := w.l.Create(context.Background(), w.e, id, bill{}); err != nil {
			w.t.Fatalf("create %s: %v", id, err)
		}
	}
}

func (w *world) get(id string) lifecycle.Entity[bill] {
	w.t.Helper()
	got, err := w.l.Get(context.Background(), w.e, id)
	if err != nil {
		w.t.Fatalf("get %s: %v", id, err)
	}
	return got
}

// history is the names of what happened to an entity.
func (w *world) history(id string) string {
	w.t.Helper()
	all, err := holdfast.Collect(w.l.ReadHistory(context.Background(), w.e, id, 0))
	if err != nil {
		w.t.Fatalf("history of %s: %v", id, err)
	}
	var names []string
	for i, e := range all {
		if e.Version != int64(i) {
			w.t.Errorf("event %d of %s has version %d", i, id, e.Version)
		}
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

// happened fails unless this is all that happened to an entity, which is then in a
// status, free.
func (w *world) happened(id, status string, events ...string) {
	w.t.Helper()
	if w.own && len(events) == 1 && events[0] == "created" { // it was never touched
		events = nil
	}
	want := strings.Join(events, " ")
	if w.own {
		want = strings.Replace(want, "created", "seen", 1)
	}
	if got := w.history(id); got != want {
		w.t.Errorf("history of %s: got %q, want %q", id, got, want)
	}
	w.free(id, status)
}

// free fails unless an entity is in a status and unclaimed.
func (w *world) free(id, status string) {
	w.t.Helper()
	if got := w.get(id); got.Status != status || got.Claimed != nil {
		w.t.Errorf("%s: got status %q, claimed by %+v, want %q, unclaimed", id, got.Status, got.Claimed, status)
	}
}

// advance moves the time of the database.
func (w *world) advance(by time.Duration) { w.t.Helper(); holdfasttest.Advance(w.t, w.e, by) }

// round has the janitor go round once.
func (w *world) round() { engine.Of(w.e).Round(context.Background()) }

// run runs an engine until the test ends, or the function is called.
func (w *world) run(e *holdfast.Engine) (stop func()) { return testkit.Run(w.t, e) }

// in runs a statement in a transaction; arguments are $1, $2 …
func (w *world) in(ctx context.Context, tx holdfast.Tx, text string, args ...any) error {
	_, err := storetest.Exec(ctx, tx, text, args...)
	return err
}

// exec runs a statement of the program's own.
func (w *world) exec(text string, args ...any) {
	w.t.Helper()
	err := w.e.Update(context.Background(), func(ctx context.Context, tx holdfast.Tx) error { return w.in(ctx, tx, text, args...) })
	if err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
}

// texts reads one column.
func (w *world) texts(text string) (all []string) {
	w.t.Helper()
	err := w.e.Update(context.Background(), func(ctx context.Context, tx holdfast.Tx) (err error) {
		all, err = storetest.Column[string](ctx, tx, text)
		return err
	})
	if err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	return all
}

// makeOut makes a table that bodies write to.
func (w *world) makeOut() {
	w.t.Helper()
	w.exec(`CREATE TABLE written (id text NOT NULL, who text NOT NULL)`)
}

// write has a body write a row when it is settled.
func (w *world) write(a *lifecycle.Act[bill], who string) {
	a.WriteTx(w.writes(a.Entity.ID, who))
}

func (w *world) writes(id, who string) func(context.Context, holdfast.Tx) error {
	return func(ctx context.Context, tx holdfast.Tx) error {
		return w.in(ctx, tx, `INSERT INTO written (id, who) VALUES ($1, $2)`, id, who)
	}
}

// written fails unless these are the rows that were written for an entity.
func (w *world) written(id string, who ...string) {
	w.t.Helper()
	got := w.texts(`SELECT who FROM written WHERE id = '` + id + `' ORDER BY who`)
	if !slices.Equal(got, who) {
		w.t.Errorf("rows of %s: got %q, want %q", id, got, who)
	}
}

// fire fires a step for the requester "admin".
func (w *world) fire(id, step string, o ...lifecycle.FireOption) (lifecycle.Entity[bill], error) {
	return w.l.Fire(context.Background(), w.e, id, step, "admin", o...)
}

// factsOf are the facts of an error.
func factsOf(err error) map[string]any {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Fields
	}
	return nil
}

// held fires a step in the background whose body waits, and returns when the body runs. The body continues
// with the value sent to go_on; the result arrives on done.
func (w *world) held(id, step string, f body, o ...lifecycle.FireOption) (goOn chan<- error, done <-chan error) {
	w.t.Helper()
	return w.heldBy("admin", id, step, f, o...)
}

// heldBy is held for a requester.
func (w *world) heldBy(as, id, step string, f body, o ...lifecycle.FireOption) (goOn chan<- error, done <-chan error) {
	w.t.Helper()
	begun, on, end := make(chan struct{}), make(chan error, 1), make(chan error, 1)
	w.act(id, func(ctx context.Context, a *lifecycle.Act[bill]) error {
		close(begun)
		err := <-on
		if f != nil {
			if failed := f(ctx, a); failed != nil {
				return failed
			}
		}
		return err
	})
	go func() {
		_, err := w.l.Fire(context.Background(), w.e, id, step, as, o...)
		end <- err
	}()
	select {
	case <-begun:
	case err := <-end:
		w.t.Fatalf("the body of %s did not begin: %v", id, err)
	}
	w.act(id, nil)
	return on, end
}

func ids(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}
