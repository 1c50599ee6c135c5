package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/stream"
)

// commands is the number of commands in a sequence; -rapid.checks sets the number of sequences.
const commands = 50

// TestRandomWalk verifies that SQLite, PostgreSQL by its fast statements, and PostgreSQL by its
// general ones return the results of a small model, for random sequences of commands: alone, in
// updates and in transactions of the user's own, committed and rolled back. A failure prints the
// sequence, shrunk, and the flag that replays it.
func TestRandomWalk(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := flag.Set("rapid.checks", fmt.Sprint(testlevel.Pick(8, 80, 20_000))); err != nil {
			t.Fatal(err)
		}
	}
	walkers := []*walker{
		newWalker(t, "sqlite", SQLite()),
		newWalker(t, "postgres", Postgres()),
		newWalker(t, "postgres-plain", PostgresPlain()),
	}
	testlevel.Rapid()
	rapid.Check(t, func(rt *rapid.T) {
		blocks := drawBlocks(rt)
		want := walkModel(blocks)
		got := make([][]string, len(walkers))
		var group sync.WaitGroup
		for i, w := range walkers {
			group.Go(func() { got[i] = w.walk(t, blocks) })
		}
		group.Wait()
		for i, w := range walkers {
			compare(rt, w.name, blocks, got[i], want)
		}
	})
}

func compare(rt *rapid.T, name string, blocks []block, got, want []string) {
	if slices.Equal(got, want) {
		return
	}
	var b strings.Builder
	for _, bl := range blocks {
		fmt.Fprintf(&b, "%s\n", bl)
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			rt.Fatalf("%s: result %d is\n  %s\nwant\n  %s\nin\n%s", name, i, slices.Concat(got, make([]string, len(want)))[i], want[i], b.String())
		}
	}
	rt.Fatalf("%s returned %d results, want %d", name, len(got), len(want))
}

// mode selects how the commands of a block are run.
type mode string

const (
	single       mode = "single"
	update       mode = "update"
	updateUndone mode = "update, rolled back"
	join         mode = "join"
	joinUndone   mode = "join, rolled back"
)

type block struct {
	mode mode
	ops  []op
}

func (b block) String() string { return fmt.Sprintf("%s: %v", b.mode, b.ops) }

func (b block) undone() bool { return b.mode == updateUndone || b.mode == joinUndone }

// op is one command.
type op struct {
	verb   string
	key    string
	want   *int64
	events []string
	from   []string
	to     string
	data   string
	field  string
	by     int64
	fields []field
}

type field struct {
	name  string
	value modelValue
}

func (o op) String() string {
	want := "any"
	if o.want != nil {
		want = fmt.Sprint(*o.want)
	}
	return fmt.Sprintf("{%s %s want %s events %v from %v to %q data %s field %q by %d fields %v}",
		o.verb, o.key, want, o.events, o.from, o.to, o.data, o.field, o.by, o.fields)
}

func drawBlocks(rt *rapid.T) []block {
	var blocks []block
	for n := 0; n < commands; {
		b := block{mode: rapid.SampledFrom([]mode{single, single, single, single, update, updateUndone, join, joinUndone}).Draw(rt, "mode")}
		size := 1
		if b.mode != single {
			size = rapid.IntRange(1, 6).Draw(rt, "size")
		}
		for range min(size, commands-n) {
			b.ops = append(b.ops, drawOp(rt))
		}
		n += len(b.ops)
		blocks = append(blocks, b)
	}
	return blocks
}

// values are JSON values with the integer that an inc finds in them.
var values = []modelValue{
	{"0", big.NewInt(0)}, {"41", big.NewInt(41)}, {"-7", big.NewInt(-7)}, {"1e2", big.NewInt(100)}, {"2.50e1", big.NewInt(25)}, {"1.0", big.NewInt(1)}, {"2.5", nil},
	{"9223372036854775807", big.NewInt(9223372036854775807)}, {"-9223372036854775808", big.NewInt(-9223372036854775808)},
	{"9223372036854775808", new(big.Int).Add(big.NewInt(9223372036854775807), big.NewInt(1))},
	{"9007199254740993", big.NewInt(9007199254740993)}, {`"żółć 🦀 \" 1e2"`, nil}, {"null", nil}, {"true", nil}, {`{"a":[1,1e2]}`, nil},
}

var (
	keys     = []string{"a", "b", "ż/'\"%"}
	statuses = []string{"new", "open", "closed"}
	fields   = []string{"n", "m", `odd".$`}
	datas    = []string{`{}`, `{"n":1e2,"x":[null,"ż"]}`, `{"a":{"b":9007199254740993}}`}
	steps    = []int64{1, -1, 0, 5, 9223372036854775807, -9223372036854775808}
	wants    = []int64{-1, 0, 1, 2, 3, 4, 6, 9}
	verbs    = []string{"append", "append", "create", "transition", "transition", "transition", "put", "put", "inc", "inc", "delete", "getEntity", "getScope", "read"}
)

func drawOp(rt *rapid.T) op {
	o := op{
		verb: rapid.SampledFrom(verbs).Draw(rt, "verb"),
		key:  rapid.SampledFrom(keys).Draw(rt, "key"),
	}
	if rapid.Bool().Draw(rt, "wants") {
		w := rapid.SampledFrom(wants).Draw(rt, "want")
		o.want = &w
	}
	switch o.verb {
	case "append":
		o.events = rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "z"}), 1, 3).Draw(rt, "events")
	case "create":
		o.to, o.data = rapid.SampledFrom(statuses).Draw(rt, "to"), rapid.SampledFrom(datas).Draw(rt, "data")
	case "transition":
		if o.want != nil {
			*o.want = max(*o.want, 0)
		}
		o.from = rapid.SliceOfNDistinct(rapid.SampledFrom(statuses), 1, 2, rapid.ID[string]).Draw(rt, "from")
		o.to = rapid.SampledFrom(statuses).Draw(rt, "to")
		o.data = rapid.SampledFrom(append([]string{""}, datas...)).Draw(rt, "data")
	case "put":
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(fields), 0, 3, rapid.ID[string]).Draw(rt, "names") {
			o.fields = append(o.fields, field{name, rapid.SampledFrom(values).Draw(rt, "value")})
		}
	case "inc":
		o.field, o.by = rapid.SampledFrom(fields).Draw(rt, "field"), rapid.SampledFrom(steps).Draw(rt, "by")
	}
	return o
}

func walkModel(blocks []block) []string {
	var answers []string
	m := newModel()
	for _, b := range blocks {
		before := m.clone()
		for _, o := range b.ops {
			answers = append(answers, m.run(o))
		}
		if b.undone() {
			m = before
		}
	}
	for _, name := range streamNames() {
		answers = append(answers, fmt.Sprint(name, m.history[name]))
	}
	return answers
}

func (m *model) run(o op) string {
	return map[string]func(op) string{
		"append": m.append, "create": m.create, "transition": m.transition, "getEntity": m.getEntity,
		"put": m.put, "inc": m.inc, "delete": m.delete, "getScope": m.getScope, "read": m.read,
	}[o.verb](o)
}

func streamNames() []string {
	var names []string
	for _, k := range keys {
		names = append(names, k, entities.Stream("thing", k), scopestore.Stream("user", k))
	}
	return names
}

// walker runs sequences on one database, each in a workspace of its own.
type walker struct {
	name string
	hf   *holdfast.Engine
	db   Database
}

func newWalker(t *testing.T, name string, b Backend) *walker {
	db := b.New(t)
	return &walker{name, holdfasttest.OpenOn(t, db), db}
}

func (w *walker) walk(t *testing.T, blocks []block) []string {
	ctx := freshWorkspace(context.Background())
	var answers []string
	for _, b := range blocks {
		answers = append(answers, w.block(ctx, t, b)...)
	}
	for _, name := range streamNames() {
		answers = append(answers, fmt.Sprint(name, readNames(ctx, w.hf, name)))
	}
	return answers
}

func (w *walker) block(ctx context.Context, t *testing.T, b block) []string {
	switch b.mode {
	case single:
		return runOps(ctx, w.hf, b.ops)
	case update, updateUndone:
		return w.update(ctx, b)
	}
	user := w.db.Begin(t, w.hf)
	tx, err := user.Join()
	if err != nil {
		_ = user.Rollback()
		return []string{"join: " + err.Error()}
	}
	answers := runOps(ctx, tx, b.ops)
	end := user.Commit
	if b.undone() {
		end = user.Rollback
	}
	if err := end(); err != nil {
		answers = append(answers, "end: "+err.Error())
	}
	return answers
}

func (w *walker) update(ctx context.Context, b block) (answers []string) {
	err := w.hf.Update(ctx, func(ctx context.Context, tx holdfast.Tx) error {
		answers = runOps(ctx, tx, b.ops)
		if b.undone() {
			return errStop
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		answers = append(answers, "update: "+err.Error())
	}
	return answers
}

func runOps(ctx context.Context, d holdfast.Doer, ops []op) []string {
	answers := make([]string, len(ops))
	for i, o := range ops {
		answers[i] = runOp(ctx, d, o)
	}
	return answers
}

func runOp(ctx context.Context, d holdfast.Doer, o op) string {
	switch o.verb {
	case "append":
		return runAppend(ctx, d, o)
	case "read":
		return readNames(ctx, d, o.key)
	case "create", "transition", "getEntity":
		return runEntity(ctx, d, o)
	default:
		return runScope(ctx, d, o)
	}
}

func runAppend(ctx context.Context, d holdfast.Doer, o op) string {
	want := stream.Any
	if o.want != nil {
		want = stream.Version(*o.want)
	}
	var all []stream.Event
	for _, name := range o.events {
		all = append(all, stream.Event{Name: name})
	}
	last, err := stream.Append(ctx, d, o.key, want, all...)
	return answer(err, fmt.Sprint("last ", last))
}

func runEntity(ctx context.Context, d holdfast.Doer, o op) string {
	var e entities.Entity
	var err error
	switch o.verb {
	case "create":
		e, err = entities.Create(ctx, store.DoerOf(d), entities.CreateArgs{Lifecycle: "thing", ID: o.key, Status: o.to, Data: []byte(o.data)})
	case "transition":
		a := entities.TransitionArgs{Lifecycle: "thing", ID: o.key, From: o.from, To: o.to, ExpectVersion: o.want, Event: "moved"}
		if o.data != "" {
			a.Data = []byte(o.data)
		}
		e, err = entities.Transition(ctx, store.DoerOf(d), a)
	default:
		e, err = entities.Get(ctx, store.DoerOf(d), "thing", o.key)
	}
	return answer(err, fmt.Sprintf("%s v%d %s", e.Status, e.Version, canonical(string(e.Data))))
}

func runScope(ctx context.Context, d holdfast.Doer, o op) string {
	var s scopestore.Scope
	var err error
	switch o.verb {
	case "put":
		s, err = scopestore.Put(ctx, store.DoerOf(d), scopestore.PutArgs{Kind: "user", ID: o.key, ExpectVersion: o.want, State: o.state()})
	case "inc":
		sum, err := Inc(ctx, d, IncArgs{Kind: "user", ID: o.key, Field: o.field, By: o.by})
		return answer(err, fmt.Sprintf("v%d %s = %d", sum.Version, canonical(string(sum.State)), sum.Value))
	case "delete":
		s, err = scopestore.Delete(ctx, store.DoerOf(d), scopestore.DeleteArgs{Kind: "user", ID: o.key, ExpectVersion: o.want})
		return answer(err, fmt.Sprint("deleted v", s.Version))
	default:
		s, err = scopestore.Get(ctx, store.DoerOf(d), "user", o.key)
	}
	return answer(err, fmt.Sprintf("v%d %s", s.Version, canonical(string(s.State))))
}

func (o op) state() []byte {
	var parts []string
	for _, f := range o.fields {
		parts = append(parts, fmt.Sprintf("%q: %s", f.name, f.value.json))
	}
	return []byte("{" + strings.Join(parts, " , ") + "}")
}

// answer formats the result of a call: of a refusal, its code and its details.
func answer(err error, ok string) string {
	if err == nil {
		return ok
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		return err.Error()
	}
	switch f.Code {
	case fault.Concurrency:
		return conflictResult(f.Fields["expectedVersion"].(int64), f.Fields["lastVersion"].(int64))
	case fault.Conflict, fault.InvalidTransition:
		return string(f.Code) + " " + ok
	case fault.NotFound, fault.Validation:
		return string(f.Code)
	}
	return err.Error()
}

func readNames(ctx context.Context, d holdfast.Doer, name string) string {
	all, err := holdfast.Collect(stream.Read(ctx, d, name, 0))
	names := []string{}
	for i, ev := range all {
		if ev.Version != stream.Version(i) {
			return fmt.Sprintf("event %d has version %d", i, ev.Version)
		}
		names = append(names, described(ev))
	}
	return answer(err, fmt.Sprint(names))
}

// described formats an event: its name, and for an entity's where it came from and went.
func described(ev stream.Event) string {
	var change struct{ From, To string }
	if !strings.HasPrefix(ev.Stream, "$entity/") || json.Unmarshal(ev.Data, &change) != nil {
		return ev.Name
	}
	return strings.TrimSpace(ev.Name+" "+change.From) + " -> " + change.To
}

// canonical formats a JSON document so that equal values have equal texts.
func canonical(doc string) string {
	decoder := json.NewDecoder(strings.NewReader(doc))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return doc
	}
	return plainValue(v)
}

func plainValue(v any) string {
	switch v := v.(type) {
	case json.Number:
		r, _ := new(big.Rat).SetString(v.String())
		return r.RatString()
	case []any:
		var parts []string
		for _, x := range v {
			parts = append(parts, plainValue(x))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, fmt.Sprintf("%q:%s", k, plainValue(v[k])))
		}
		return "{" + strings.Join(parts, ",") + "}"
	default:
		return fmt.Sprintf("%#v", v)
	}
}
