package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/scopestore"
)

var scopeCases = []Case{
	{"scope: one that is not there is not found", func(e *env) {
		_, err := scopestore.Get(e.ctx, engine.Of(e.hf), "user", "u")
		e.refused(err, fault.NotFound)
	}},
	{"scope: put of none creates at version 0", func(e *env) {
		got, err := e.put(e.hf, "u", none, `{"a":1}`)
		e.ok(err)
		e.equal("version", got.Version, 0)
		e.sameJSON("state", e.scope("u").State, []byte(`{"a":1}`))
		e.equal("history", e.names(scopestore.Stream("user", "u")), []string{"put"})
	}},
	{"scope: put of none refuses one that exists, and returns it", func(e *env) {
		_, err := e.put(e.hf, "u", nil, `{"a":1}`)
		e.ok(err)
		got, err := e.put(e.hf, "u", none, `{"a":2}`)
		e.moved(err, -1, 0)
		e.sameJSON("found", got.State, []byte(`{"a":1}`))
		e.sameJSON("state", e.scope("u").State, []byte(`{"a":1}`))
	}},
	{"scope: put at the exact version adds one to it", func(e *env) {
		_, err := e.put(e.hf, "u", none, `{"a":1}`)
		e.ok(err)
		got, err := e.put(e.hf, "u", at(0), `{"a":2}`)
		e.ok(err)
		e.equal("version", got.Version, 1)
		e.sameJSON("state", e.scope("u").State, []byte(`{"a":2}`))
	}},
	{"scope: put at another version is refused, and told the true one", func(e *env) {
		_, err := e.put(e.hf, "u", nil, `{"a":1}`)
		e.ok(err)
		_, err = e.put(e.hf, "u", nil, `{"a":2}`)
		e.ok(err)
		for _, want := range []int64{0, 2} {
			_, err = e.put(e.hf, "u", at(want), `{"a":3}`)
			e.moved(err, want, 1)
		}
		e.sameJSON("state", e.scope("u").State, []byte(`{"a":2}`))
		e.equal("history", len(e.names(scopestore.Stream("user", "u"))), 2)
	}},
	{"scope: put at a version of what is not there is refused, and makes nothing", func(e *env) {
		_, err := e.put(e.hf, "u", at(0), `{}`)
		e.moved(err, 0, -1)
		_, err = scopestore.Get(e.ctx, engine.Of(e.hf), "user", "u")
		e.refused(err, fault.NotFound)
	}},
	{"scope: put at any version creates and replaces", func(e *env) {
		for v := range int64(3) {
			got, err := e.put(e.hf, "u", nil, fmt.Sprintf(`{"v":%d}`, v))
			e.ok(err)
			e.equal("version", got.Version, v)
		}
	}},
	{"scope: a state is an object", func(e *env) {
		for _, state := range []string{``, `[]`, `null`, `1`, `"x"`, `{"a":1,"a":2}`} {
			_, err := e.put(e.hf, "u", nil, state)
			e.refused(err, fault.Validation)
		}
		_, err := scopestore.Get(e.ctx, engine.Of(e.hf), "user", "u")
		e.refused(err, fault.NotFound)
	}},
	{"scope: any JSON in a state survives", func(e *env) {
		state := `{"n":9007199254740993,"f":1.50,"e":1e2,"t":"żółć 🦀 \" \\ '","x":[1,{"y":null}],"":0,"a b":true}`
		_, err := e.put(e.hf, "u", nil, state)
		e.ok(err)
		e.sameJSON("state", e.scope("u").State, []byte(state))
	}},
	{"scope: a state of nearly a megabyte is kept", func(e *env) {
		state := `{"t":"` + strings.Repeat("x", 1<<20-9) + `"}`
		_, err := e.put(e.hf, "u", nil, state)
		e.ok(err)
		e.sameJSON("state", e.scope("u").State, []byte(state))
	}},
	{"scope: inc makes what is missing, and adds to what is there", func(e *env) {
		for i, by := range []int64{5, 3, -10, 0} {
			got, err := e.inc(e.hf, "u", "n", by)
			e.ok(err)
			e.equal("sum", words(got.Value, got.Version), words([]int64{5, 8, -2, -2}[i], min(i, 2))) // the last changes nothing
		}
		e.sameJSON("state", e.scope("u").State, []byte(`{"n":-2}`))
	}},
	{"scope: inc leaves the other fields as they are", func(e *env) {
		_, err := e.put(e.hf, "u", nil, `{"a":{"n":1},"t":"x","n":1}`)
		e.ok(err)
		got, err := e.inc(e.hf, "u", "m", 7)
		e.ok(err)
		e.sameJSON("state", got.State, []byte(`{"a":{"n":1},"t":"x","n":1,"m":7}`))
		got, err = e.inc(e.hf, "u", "n", 1)
		e.ok(err)
		e.sameJSON("state", got.State, []byte(`{"a":{"n":1},"t":"x","n":2,"m":7}`))
	}},
	{"scope: inc of what is no whole number is refused, and changes nothing", func(e *env) {
		for i, v := range []string{`"1"`, `1.5`, `true`, `{}`, `[]`, `9223372036854775808`, `-9223372036854775809`} {
			id, state := words(i), `{"n":`+v+`}`
			_, err := e.put(e.hf, id, nil, state)
			e.ok(err)
			_, err = e.inc(e.hf, id, "n", 1)
			e.refused(err, fault.Validation)
			e.sameJSON("state", e.scope(id).State, []byte(state))
			e.equal("version", e.scope(id).Version, 0)
		}
	}},
	{"scope: inc that would overflow is refused, up to the limit it is not", func(e *env) {
		_, err := e.inc(e.hf, "u", "n", math.MaxInt64-1)
		e.ok(err)
		got, err := e.inc(e.hf, "u", "n", 1)
		e.ok(err)
		e.equal("value", got.Value, int64(math.MaxInt64))
		_, err = e.inc(e.hf, "u", "n", 1)
		e.refused(err, fault.Validation)
		got, err = e.inc(e.hf, "u", "n", math.MinInt64)
		e.ok(err)
		e.equal("value", got.Value, -1)
		_, err = e.inc(e.hf, "u", "n", math.MinInt64)
		e.refused(err, fault.Validation)
		e.sameJSON("state", e.scope("u").State, []byte(`{"n":-1}`))
	}},
	{"scope: inc of a field with any name", func(e *env) {
		for _, field := range []string{`a"b`, "$.a", "a.b", "'", `\`, "[0]", "ż 🦀", "key", "value"} {
			for v := range int64(2) {
				got, err := e.inc(e.hf, "u", field, 1)
				e.ok(err)
				e.equal(field, got.Value, v+1)
			}
		}
		for _, field := range []string{"", "a\x00b", strings.Repeat("x", 256)} {
			_, err := e.inc(e.hf, "u", field, 1)
			e.refused(err, fault.Validation)
		}
	}},
	{"scope: a field that is null is as one that is missing", func(e *env) {
		_, err := e.put(e.hf, "u", nil, `{"n":null}`)
		e.ok(err)
		got, err := e.inc(e.hf, "u", "n", 3)
		e.ok(err)
		e.equal("value", got.Value, 3)
	}},
	{"scope: inc takes a whole number however it was written", func(e *env) {
		_, err := e.put(e.hf, "v", nil, `{"n":1.0}`)
		e.ok(err)
		got, err := e.inc(e.hf, "v", "n", 1)
		e.ok(err)
		e.equal("value", got.Value, 2)
		_, err = e.put(e.hf, "u", nil, `{"n":1e2,"m":12E-1,"t":"1e2"}`)
		e.ok(err)
		got, err = e.inc(e.hf, "u", "n", 1)
		e.ok(err)
		e.equal("value", got.Value, 101)
		_, err = e.inc(e.hf, "u", "m", 1)
		e.refused(err, fault.Validation)
		e.sameJSON("state", e.scope("u").State, []byte(`{"n":101,"m":1.2,"t":"1e2"}`))
	}},
	{"scope: a deleted one is not found, and deleting it again neither", func(e *env) {
		_, err := e.put(e.hf, "u", nil, `{}`)
		e.ok(err)
		got, err := scopestore.Delete(e.ctx, engine.Of(e.hf), scopestore.DeleteArgs{Kind: "user", ID: "u", ExpectVersion: at(0)})
		e.ok(err)
		e.equal("version", got.Version, 1)
		_, err = scopestore.Get(e.ctx, engine.Of(e.hf), "user", "u")
		e.refused(err, fault.NotFound)
		for _, want := range []*int64{nil, at(0), at(1)} {
			_, err = scopestore.Delete(e.ctx, engine.Of(e.hf), scopestore.DeleteArgs{Kind: "user", ID: "u", ExpectVersion: want})
			e.refused(err, fault.NotFound)
		}
		e.equal("history", e.names(scopestore.Stream("user", "u")), []string{"put", "deleted"})
	}},
	{"scope: delete at another version is refused", func(e *env) {
		_, err := e.put(e.hf, "u", nil, `{"a":1}`)
		e.ok(err)
		_, err = scopestore.Delete(e.ctx, engine.Of(e.hf), scopestore.DeleteArgs{Kind: "user", ID: "u", ExpectVersion: at(3)})
		e.moved(err, 3, 0)
		e.sameJSON("state", e.scope("u").State, []byte(`{"a":1}`))
	}},
	{"scope: deleted and made anew, it never has an old version", func(e *env) {
		_, err := e.put(e.hf, "u", nil, `{"a":1}`)
		e.ok(err)
		_, err = scopestore.Delete(e.ctx, engine.Of(e.hf), scopestore.DeleteArgs{Kind: "user", ID: "u"})
		e.ok(err)
		for _, stale := range []int64{0, 1} {
			_, err = e.put(e.hf, "u", at(stale), `{"stale":true}`)
			e.moved(err, stale, -1)
		}
		got, err := e.put(e.hf, "u", none, `{"a":2}`)
		e.ok(err)
		e.equal("version", got.Version, 2)
		for _, stale := range []int64{0, 1} {
			_, err = e.put(e.hf, "u", at(stale), `{"stale":true}`)
			e.moved(err, stale, 2)
		}
		e.equal("history", e.names(scopestore.Stream("user", "u")), []string{"put", "deleted", "put"})
	}},
	{"scope: inc of a deleted one begins anew at the next version", func(e *env) {
		_, err := e.inc(e.hf, "u", "n", 40)
		e.ok(err)
		_, err = scopestore.Delete(e.ctx, engine.Of(e.hf), scopestore.DeleteArgs{Kind: "user", ID: "u"})
		e.ok(err)
		got, err := e.inc(e.hf, "u", "n", 2)
		e.ok(err)
		e.equal("sum", words(got.Value, got.Version), "2 2")
	}},
	{"scope: the history of an inc tells field, step and sum", func(e *env) {
		_, err := e.inc(e.hf, "u", "n", 5)
		e.ok(err)
		_, err = e.inc(e.hf, "u", "n", 2)
		e.ok(err)
		all := e.history(scopestore.Stream("user", "u"))
		e.sameJSON("first", all[0].Data, []byte(`{"field":"n","by":5,"value":5}`))
		e.sameJSON("second", all[1].Data, []byte(`{"field":"n","by":2,"value":7}`))
	}},
	{"scope: the same id under two kinds is two scopes", func(e *env) {
		_, err := e.put(e.hf, "u", nil, `{"a":1}`)
		e.ok(err)
		_, err = scopestore.Get(e.ctx, engine.Of(e.hf), "org", "u")
		e.refused(err, fault.NotFound)
		_, err = scopestore.Put(e.ctx, engine.Of(e.hf), scopestore.PutArgs{Kind: "a/b", ID: "u", State: []byte(`{}`)})
		e.refused(err, fault.Validation)
	}},
	{"scope: 16 racing callers add up exactly, each with a version of its own", func(e *env) {
		versions := make(chan int64, 400)
		won, lost := holdfasttest.Race(e.T, 16, func(int) error {
			for range 25 {
				got, err := e.inc(e.hf, "u", "n", 1)
				if err != nil {
					return err
				}
				if got.Value != got.Version+1 {
					return fmt.Errorf("got value %d at version %d", got.Value, got.Version)
				}
				versions <- got.Version
			}
			return nil
		})
		e.equal("won", words(won, lost), "16 []")
		close(versions)
		seen := map[int64]bool{}
		for v := range versions {
			e.equal("version seen before", seen[v], false)
			seen[v] = true
		}
		e.sameJSON("state", e.scope("u").State, []byte(`{"n":400}`))
	}},
	{"scope: 8 callers that compare and swap lose no update", func(e *env) {
		_, err := e.put(e.hf, "u", none, `{"n":0}`)
		e.ok(err)
		won, lost := holdfasttest.Race(e.T, 8, func(int) error {
			for n := 0; n < 10; {
				switch err := e.addOne("u"); {
				case err == nil:
					n++
				case !errors.Is(err, holdfast.ErrConcurrency):
					return err
				}
			}
			return nil
		})
		e.equal("won", words(won, lost), "8 []")
		e.sameJSON("state", e.scope("u").State, []byte(`{"n":80}`))
		e.equal("version", e.scope("u").Version, 80)
	}},
}

// addOne reads a scope, adds one, and writes it back if no other caller was faster.
func (e *env) addOne(id string) error {
	s, err := scopestore.Get(e.ctx, engine.Of(e.hf), "user", id)
	if err != nil {
		return err
	}
	var state struct{ N int64 }
	if err := json.Unmarshal(s.State, &state); err != nil {
		return err
	}
	_, err = e.put(e.hf, id, &s.Version, fmt.Sprintf(`{"n":%d}`, state.N+1))
	return err
}
