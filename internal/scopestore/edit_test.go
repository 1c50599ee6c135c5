package scopestore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
)

// Parts of random states and edits: few names, so that they collide, and similar values.
var (
	names  = []string{"a", "A", "n", "l", "r", `q"'\`, "$.a[0]", "ż🦀", "\u2028", "a b"}
	values = []string{
		"0", "1", "-1", "1.0", "1e2", "100", "1.5", "-0", "0.1", "9223372036854775807", "9223372036854775806", "-9223372036854775808", "9223372036854775808",
		"9223372036854775809", "9007199254740993", "9007199254740992", "0.10000000000000000001", "0.10000000000000000002", "1e300", "123456789012345678901234567890",
		`""`, `"1"`, `"a"`, `"A"`, `"<&>"`, `"\u2028"`, `"\t\"\\"`, `"ż🦀"`, "null", "true", "false", "{}", "[]", `[null]`, `[1,[2]]`, `[{"a":1,"b":2}]`, `[{"b":2,"a":1}]`,
	}
	// alike are numbers that are equal as float64.
	alike = map[string]string{
		"9223372036854775808": "9223372036854775809", "9007199254740993": "9007199254740992",
		"0.10000000000000000001": "0.10000000000000000002", "123456789012345678901234567890": "123456789012345678901234567891",
	}
	steps = []int64{0, 1, -1, 7, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1}
)

// drawObject draws an object with nested objects.
func drawObject(t *rapid.T, depth int) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID[string]).Draw(t, "names") {
		m[name] = drawValue(t, depth)
	}
	return m
}

func drawValue(t *rapid.T, depth int) json.RawMessage {
	if depth > 0 && rapid.IntRange(0, 3).Draw(t, "deeper") == 0 {
		doc, err := json.Marshal(drawObject(t, depth-1))
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	if rapid.IntRange(0, 4).Draw(t, "exact") == 0 {
		return json.RawMessage(rapid.SampledFrom(slices.Sorted(maps.Keys(alike))).Draw(t, "value"))
	}
	return json.RawMessage(rapid.SampledFrom(values).Draw(t, "value"))
}

// edit is one edit with its expected version.
type edit struct {
	op   scopestore.Op
	want *int64
	text string
}

func drawEdit(t *rapid.T, state map[string]json.RawMessage) edit {
	fields := names
	if len(state) > 0 && rapid.Bool().Draw(t, "there") { // most names are not
		fields = slices.Sorted(maps.Keys(state))
	}
	field, key := rapid.SampledFrom(fields).Draw(t, "field"), rapid.SampledFrom(names).Draw(t, "key")
	value := drawValue(t, 2)
	var e edit
	var err error
	switch rapid.IntRange(0, 4).Draw(t, "op") {
	case 0:
		by := rapid.SampledFrom(steps).Draw(t, "by")
		e.text = fmt.Sprintf("inc %q %d", field, by)
		e.op, err = scopestore.Inc(field, by)
	case 1:
		doc, _ := json.Marshal(drawObject(t, 3))
		if old, has := state[field]; has && rapid.Bool().Draw(t, "same") { // the current value, or nearly
			if other := alike[string(old)]; other != "" && rapid.Bool().Draw(t, "other") {
				old = json.RawMessage(other)
			}
			doc, _ = json.Marshal(map[string]json.RawMessage{field: old})
		}
		e.text = fmt.Sprintf("patch %s", doc)
		e.op, err = scopestore.Patch(doc)
	case 2:
		e.text = fmt.Sprintf("push %q %s", field, value)
		e.op, err = scopestore.Push(field, value)
	case 3:
		e.text = fmt.Sprintf("set %q %q %s", field, key, value)
		e.op, err = scopestore.Set(field, key, value)
	default:
		e.text = fmt.Sprintf("unset %q %q", field, key)
		e.op, err = scopestore.Unset(field, key)
	}
	if err != nil {
		t.Fatal(err)
	}
	if w := rapid.IntRange(0, 9).Draw(t, "wants"); w < 4 {
		e.want = new([]int64{scopestore.Some, events.None, 0, 1}[w])
		e.text += fmt.Sprint(" at ", *e.want)
	}
	return e
}

// model is a scope as Op.Apply computes it.
type model struct {
	state   []byte // nil: the scope does not exist
	version int64
}

// run applies an edit to the model and returns the expected answer.
func (m *model) run(e edit) string {
	seen := int64(events.None)
	if m.state != nil {
		seen = m.version
	}
	if e.want != nil && *e.want != seen && (*e.want != scopestore.Some || m.state == nil) {
		return answer(scopestore.Edited{Scope: scopestore.Scope{Version: seen, State: m.state}}, fault.New(fault.Concurrency, "moved"))
	}
	next, changed, err := e.op.Apply(m.state)
	if err == nil && changed {
		m.state, m.version = next, m.version+1
		seen = m.version
	}
	return answer(scopestore.Edited{Scope: scopestore.Scope{Version: seen, State: m.state}, Changed: changed}, err)
}

// answer formats the result of an edit, with the state in canonical form.
func answer(e scopestore.Edited, err error) string {
	doc := "none"
	if e.Version != events.None {
		doc = form(e.State)
	}
	return fmt.Sprintf("%s %t at %d %s", fault.CodeOf(err), e.Changed, e.Version, doc)
}

func form(doc []byte) string {
	same, err := scopestore.State(doc)
	if err != nil {
		return err.Error()
	}
	return string(same)
}

// engines are the databases, and PostgreSQL without its short statements.
func engines(t *testing.T) map[string]*holdfast.Engine {
	return map[string]*holdfast.Engine{
		"sqlite":         holdfasttest.OpenOn(t, holdfasttest.At(holdfasttest.SQLite(t))),
		"postgres":       holdfasttest.OpenOn(t, holdfasttest.At(holdfasttest.PostgreSQL(t))),
		"postgres-plain": holdfasttest.OpenOn(t, store.Plain(postgres.URL(holdfasttest.PostgreSQL(t)))),
	}
}

var ids atomic.Int64

// TestEditsAreThoseOfTheModel verifies, for random states and sequences of edits, that
// both databases return the same as Op.Apply: the state, the version, whether anything
// changed, and the errors.
func TestEditsAreThoseOfTheModel(t *testing.T) {
	testlevel.OneGoroutine(t)
	all := engines(t)
	testlevel.Rapid()
	rapid.Check(t, func(rt *rapid.T) {
		id, m := fmt.Sprint("alone-", ids.Add(1)), &model{version: -1}
		begin := drawObject(rt, 3)
		if rapid.IntRange(0, 4).Draw(rt, "none") > 0 {
			doc, _ := json.Marshal(begin)
			m.state, m.version = []byte(form(doc)), 0
			for name, hf := range all {
				if _, err := scopestore.Put(context.Background(), engine.Of(hf), scopestore.PutArgs{Kind: "k", ID: id, State: doc}); err != nil {
					rt.Fatalf("%s: put %s: %v", name, doc, err)
				}
			}
		}
		for range rapid.IntRange(1, 8).Draw(rt, "edits") {
			e, before := drawEdit(rt, begin), string(m.state)
			want := m.run(e)
			for name, hf := range all {
				got, err := scopestore.Edit(context.Background(), engine.Of(hf), scopestore.EditArgs{Kind: "k", ID: id, Op: e.op, ExpectVersion: e.want})
				if result := answer(got, err); result != want {
					rt.Fatalf("%s: %s of %s\n got %s\nwant %s", name, e.text, before, result, want)
				}
			}
		}
	})
}

// TestEditsMadeTogetherAreThoseOfTheModel verifies, for random concurrent edits of one
// scope, some of which share a statement, that they have an order in which each equals
// Op.Apply on its predecessor: edits that changed something by their versions, none of
// which is missing or returned twice, and every other edit on the state that it
// returned.
func TestEditsMadeTogetherAreThoseOfTheModel(t *testing.T) {
	all := engines(t)
	testlevel.Rapid()
	rapid.Check(t, func(rt *rapid.T) {
		id, begin := fmt.Sprint("together-", ids.Add(1)), drawObject(rt, 2)
		var edits []edit
		for range rapid.IntRange(4, 12).Draw(rt, "edits") {
			edits = append(edits, drawEdit(rt, begin))
		}
		var group sync.WaitGroup
		for name, hf := range all {
			group.Go(func() {
				if err := together(hf, id, begin, edits); err != nil {
					rt.Errorf("%s: %v", name, err)
				}
			})
		}
		group.Wait()
	})
}

// together runs edits concurrently, and returns what is wrong with their results.
func together(hf *holdfast.Engine, id string, begin map[string]json.RawMessage, edits []edit) error {
	ctx := context.Background()
	states := map[int64][]byte{-1: nil} // by version
	if len(begin) > 0 {
		doc, _ := json.Marshal(begin)
		if _, err := scopestore.Put(ctx, engine.Of(hf), scopestore.PutArgs{Kind: "k", ID: id, State: doc}); err != nil {
			return err
		}
		states[0] = []byte(form(doc))
	}
	results, errs := make([]scopestore.Edited, len(edits)), make([]error, len(edits))
	var group sync.WaitGroup
	for i, e := range edits {
		group.Go(func() {
			results[i], errs[i] = scopestore.Edit(ctx, engine.Of(hf), scopestore.EditArgs{Kind: "k", ID: id, Op: e.op, ExpectVersion: e.want})
		})
	}
	group.Wait()
	for i, e := range results {
		if e.Changed && states[e.Version] != nil {
			return fmt.Errorf("%s got version %d, which another edit has too", edits[i].text, e.Version)
		}
		if e.Changed {
			states[e.Version] = []byte(form(e.State))
		}
	}
	for i, e := range results {
		before := e.Version
		if e.Changed {
			before--
		}
		doc, known := states[before]
		if !known {
			return fmt.Errorf("%s got version %d, but no edit made version %d", edits[i].text, e.Version, before)
		}
		m := &model{doc, before}
		if got, want := answer(e, errs[i]), m.run(edits[i]); got != want {
			return fmt.Errorf("%s of %s\n got %s\nwant %s", edits[i].text, doc, got, want)
		}
	}
	return nil
}

// TestApplyLeavesWhatItIsGiven verifies that an edit makes a new state, and which edits
// are refused.
func TestApplyLeavesWhatItIsGiven(t *testing.T) {
	state := []byte(`{"l":[1,{"a":1}],"n":1,"r":{"k":{"b":1}}}`)
	before := string(state)
	testlevel.Rapid()
	rapid.Check(t, func(rt *rapid.T) {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(state, &fields); err != nil {
			rt.Fatal(err)
		}
		e := drawEdit(rt, fields)
		next, changed, err := e.op.Apply(state)
		if string(state) != before {
			rt.Fatalf("%s modified its input to %s", e.text, state)
		}
		if err == nil && changed == strictjson.Equal(state, next) {
			rt.Fatalf("%s returned changed %t and state %s", e.text, changed, next)
		}
		if err != nil || !strings.HasPrefix(e.text, "set") {
			return
		}
		if again, changed, err := e.op.Apply(next); err != nil || changed || !strictjson.Equal(again, next) {
			rt.Fatalf("%s applied twice changed %s to %s, error %v", e.text, next, again, err)
		}
	})
}

// TestStatesHaveALimit verifies that the limit applies to the stored form of a state: a
// number is longer there than with its exponent.
func TestStatesHaveALimit(t *testing.T) {
	many := `{"l":[` + strings.Repeat("1e300,", 10_000) + `1]}`
	_, whole := scopestore.State([]byte(many))
	_, patch := scopestore.Patch([]byte(many))
	_, push := scopestore.Push("l", []byte(many))
	for _, err := range []error{whole, patch, push} {
		if !errors.Is(err, fault.Of(fault.PayloadTooLarge)) {
			t.Errorf("got error %v, want PAYLOAD_TOO_LARGE", err)
		}
	}
	op, err := scopestore.Push("l", []byte(`"`+strings.Repeat("x", 600<<10)+`"`))
	if err != nil {
		t.Fatal(err)
	}
	half, changed, err := op.Apply(nil)
	if err != nil || !changed {
		t.Fatal(err)
	}
	if _, _, err := op.Apply(half); !errors.Is(err, fault.Of(fault.PayloadTooLarge)) {
		t.Errorf("got error %v, want PAYLOAD_TOO_LARGE", err)
	}
}
