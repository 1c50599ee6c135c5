package scope_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/stream"
)

func TestMain(m *testing.M) {
	if where := os.Getenv(nodeVar); where != "" {
		if err := serveCommands(where); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(holdfasttest.Main(m))
}

// env is what a test works with: a store of one kind, and a workspace of its own.
type env struct {
	*testing.T
	name string // of the store
	ctx  context.Context
	// One of them is set: a store of its own, a transaction, or an engine. With a
	// transaction its engine is set too, and may not be used.
	own *scope.Store
	tx  holdfast.Tx
	hf  *holdfast.Engine
	// pass lets time go by, for the store and for everybody at it.
	pass func(time.Duration)
	// where is what another process opens the store by, "" for one in memory.
	where string
}

// at is a handle on a scope of the env.
func at[T any](e *env, kind, id string, o ...scope.Option) scope.Scope[T] {
	switch {
	case e.tx != nil:
		return scope.In[T](e.tx, kind, id, o...)
	case e.hf != nil:
		return scope.In[T](e.hf, kind, id, o...)
	}
	return scope.Of[T](e.own, kind, id, o...)
}

// other is the same store as another process has it: its callers do not stand in the same
// queue.
func (e *env) other() *env {
	e.Helper()
	o := open(e.T, e.where)
	o.T, o.name, o.ctx = e.T, e.name, e.ctx
	return o
}

// open opens a store by its name: a database's URL, a database's file, or a folder.
func open(t testing.TB, where string) *env {
	t.Helper()
	if folder, ok := strings.CutPrefix(where, "files:"); ok {
		own, err := scope.FileStore(folder)
		if err != nil {
			t.Fatal(err)
		}
		return &env{own: own, where: where}
	}
	hf := holdfasttest.OpenOn(t, database(where))
	return &env{hf: hf, where: where, pass: func(d time.Duration) { holdfasttest.Advance(t, hf, d) }}
}

// memory returns a store in memory.
func memory(t testing.TB, kinds ...scope.Kind) *scope.Store {
	t.Helper()
	s, err := scope.MemoryStore(kinds...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stores are the stores that there are, by name.
var stores = map[string]func(testing.TB) *env{
	"memory":   func(t testing.TB) *env { return &env{own: memory(t)} },
	"files":    func(t testing.TB) *env { return open(t, "files:"+t.TempDir()) },
	"sqlite":   func(t testing.TB) *env { return open(t, "sqlite:"+holdfasttest.SQLite(t)) },
	"postgres": func(t testing.TB) *env { return open(t, holdfasttest.PostgreSQL(t)) },
}

// each runs a test on every store, side by side; on those that are named, if some are. Of the two databases, it
// runs on those of [testlevel.Databases], unless only one is named.
func each(t *testing.T, f func(*env), only ...string) {
	t.Helper()
	if len(only) == 0 {
		only = everyStore
	}
	if both := []string{"sqlite", "postgres"}; slices.Contains(only, both[0]) && slices.Contains(only, both[1]) {
		others := slices.DeleteFunc(slices.Clone(only), func(name string) bool { return slices.Contains(both, name) })
		only = append(others, testlevel.Databases(t)...)
	}
	for _, name := range only {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := stores[name](t).in(t)
			e.name = name
			f(e)
		})
	}
}

var everyStore = []string{"memory", "files", "sqlite", "postgres"}

// shared are the stores that several processes use.
var shared = []string{"files", "sqlite", "postgres"}

// someStores are the stores of a test of large states, which take long: at level test two of them, by the seed.
func someStores(t *testing.T, stores []string) (some []string) {
	for _, i := range testlevel.Rand(t).Perm(len(stores))[:testlevel.Pick(testlevel.Share(2), len(stores), len(stores))] {
		some = append(some, stores[i])
	}
	return some
}

// in is the same store for a test, in a workspace of its own.
func (e *env) in(t *testing.T) *env {
	c := *e
	c.T, c.ctx = t, freshWorkspace()
	return &c
}

// inBubble runs a case on a store of the process where time passes when everybody waits.
func inBubble(t *testing.T, make func() *scope.Store, f func(*env)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(&env{T: t, ctx: freshWorkspace(), own: make(), pass: func(d time.Duration) { <-time.After(d) }})
	})
}

var workspaces atomic.Int64

func freshWorkspace() context.Context {
	return holdfast.InWorkspace(context.Background(), fmt.Sprintf("case-%d", workspaces.Add(1)))
}

func database(where string) holdfast.Database {
	return holdfasttest.At(strings.TrimPrefix(where, "sqlite:"))
}

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("%v (%v)", err, errors.Unwrap(err))
	}
}

// refused wants an error with a code, and returns it.
func (e *env) refused(err error, code fault.Code) *fault.Error {
	e.Helper()
	f, _ := errors.AsType[*fault.Error](err)
	if f == nil || fault.CodeOf(err) != code || f.Message == "" {
		e.Fatalf("got %v, want %s", err, code)
	}
	return f
}

func (e *env) equal(what string, got, want any) {
	e.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		e.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// raw is a scope of whatever is in it.
type raw = scope.Scope[json.RawMessage]

func (e *env) raw(id string, o ...scope.Option) raw {
	return at[json.RawMessage](e, "thing", id, o...)
}

// has sets a scope to a document, whatever it was before.
func (e *env) has(id, doc string) scope.Snapshot[json.RawMessage] {
	e.Helper()
	s, err := e.raw(id).Atomic(e.ctx, func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(doc), nil
	})
	e.ok(err)
	return s
}

// is wants a scope to be there, with a state and a version.
func (e *env) is(id, doc string, version int64) {
	e.Helper()
	s, err := e.raw(id).Get(e.ctx)
	e.ok(err)
	e.like(s, doc, version, false)
}

// like wants a snapshot to be of a scope that is there.
func (e *env) like(s scope.Snapshot[json.RawMessage], doc string, version int64, changed bool) {
	e.Helper()
	if !s.Exists || s.Version != version || s.Changed != changed || !strictjson.Equal(s.State, []byte(doc)) || s.Kind != "thing" {
		e.Errorf("got %s at %d, changed %t, exists %t, want %s at %d, changed %t", shortened(s.State), s.Version, s.Changed, s.Exists, shortened([]byte(doc)), version, changed)
	}
}

func shortened(doc []byte) string { return fmt.Sprintf("%.200s", doc) }

// isNone wants that there is no such scope.
func (e *env) isNone(id string) {
	e.Helper()
	s, err := e.raw(id).Get(e.ctx)
	e.ok(err)
	e.absent(s, -1, false)
}

// absent wants a snapshot to be of a scope that is not there.
func (e *env) absent(s scope.Snapshot[json.RawMessage], version int64, changed bool) {
	e.Helper()
	if s.Exists || s.Version != version || s.Changed != changed || string(s.State) != "{}" {
		e.Errorf("got %s at %d, changed %t, exists %t, want none at %d, changed %t", s.State, s.Version, s.Changed, s.Exists, version, changed)
	}
}

// history returns the names of a scope's events, nil if the store has none.
func (e *env) history(kind, id string) (names []string) {
	e.Helper()
	for _, ev := range e.events(kind, id) {
		names = append(names, ev.Name)
	}
	return names
}

// actors returns the actors of these events.
func (e *env) actors(kind, id string) (all []string) {
	e.Helper()
	for _, ev := range e.events(kind, id) {
		all = append(all, ev.Actor)
	}
	return all
}

func (e *env) events(kind, id string) []stream.Event {
	e.Helper()
	var d holdfast.Doer = e.hf
	switch {
	case e.tx != nil:
		d = e.tx
	case e.hf == nil:
		return nil
	}
	all, err := holdfast.Collect(stream.Read(e.ctx, d, scopestore.Stream(kind, id), 0))
	e.ok(err)
	return all
}

// verb is one way to change a scope.
type verb struct {
	name string
	do   func(context.Context, raw) (scope.Snapshot[json.RawMessage], error)
}

// verbs are all ways to change a scope. Each changes {"n":1,"l":[1],"r":{"k":1}}.
var verbs = []verb{
	{"patch", func(ctx context.Context, s raw) (scope.Snapshot[json.RawMessage], error) {
		return s.Patch(ctx, map[string]any{"p": true})
	}},
	{"inc", func(ctx context.Context, s raw) (scope.Snapshot[json.RawMessage], error) {
		return s.Inc(ctx, "n", 1)
	}},
	{"push", func(ctx context.Context, s raw) (scope.Snapshot[json.RawMessage], error) {
		return s.Push(ctx, "l", "x")
	}},
	{"set", func(ctx context.Context, s raw) (scope.Snapshot[json.RawMessage], error) {
		return s.SetRecord(ctx, "r", "k", "x")
	}},
	{"unset", func(ctx context.Context, s raw) (scope.Snapshot[json.RawMessage], error) {
		return s.DeleteRecord(ctx, "r", "k")
	}},
	{"atomic", func(ctx context.Context, s raw) (scope.Snapshot[json.RawMessage], error) {
		return s.Atomic(ctx, func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"a":1}`), nil
		})
	}},
	{"delete", func(ctx context.Context, s raw) (scope.Snapshot[json.RawMessage], error) {
		return s.Delete(ctx)
	}},
}

// full is what each of the verbs changes.
const full = `{"n":1,"l":[1],"r":{"k":1}}`

// after is what each verb makes of it.
var after = map[string]string{
	"patch":  `{"n":1,"l":[1],"r":{"k":1},"p":true}`,
	"inc":    `{"n":2,"l":[1],"r":{"k":1}}`,
	"push":   `{"n":1,"l":[1,"x"],"r":{"k":1}}`,
	"set":    `{"n":1,"l":[1],"r":{"k":"x"}}`,
	"unset":  `{"n":1,"l":[1],"r":{}}`,
	"atomic": `{"a":1}`,
}
