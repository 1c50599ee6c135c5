package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
)

// edit edits a scope; want and ttl are optional.
func (e *env) edit(d holdfast.Doer, id string, op scopestore.Op, want *int64, ttl time.Duration) (scopestore.Edited, error) {
	return scopestore.Edit(e.ctx, store.DoerOf(d), scopestore.EditArgs{Kind: "user", ID: id, Op: op, ExpectVersion: want, TTL: ttl, Meta: events.Meta{Actor: "me"}})
}

// op returns an edit by its name, of the field f and the key k.
func (e *env) op(name, value string) (op scopestore.Op) {
	e.Helper()
	var err error
	switch name {
	case "inc":
		op, err = scopestore.Inc("f", int64(len(value)))
	case "patch":
		op, err = scopestore.Patch([]byte(value))
	case "push":
		op, err = scopestore.Push("f", []byte(value))
	case "set":
		op, err = scopestore.Set("f", "k", []byte(value))
	default:
		op, err = scopestore.Unset("f", "k")
	}
	e.ok(err)
	return op
}

// edits are the results of each edit on a missing field, and on an existing one.
var edits = []struct{ name, value, made, found, becomes string }{
	{"inc", "x", `{"f":1}`, `{"f":1,"o":0}`, `{"f":2,"o":0}`},
	{"patch", `{"f":{"x":1,"y":null}}`, `{"f":{"x":1}}`, `{"f":{"y":1},"o":0}`, `{"f":{"x":1},"o":0}`},
	{"push", `{"x":1}`, `{"f":[{"x":1}]}`, `{"f":[0],"o":0}`, `{"f":[0,{"x":1}],"o":0}`},
	{"set", `[1]`, `{"f":{"k":[1]}}`, `{"f":{"k":0,"l":0},"o":0}`, `{"f":{"k":[1],"l":0},"o":0}`},
	{"unset", "", "", `{"f":{"k":0,"l":0},"o":0}`, `{"f":{"l":0},"o":0}`},
}

var scopeEditCases = []Case{
	{"scope edit: makes what is missing", func(e *env) {
		for _, c := range edits {
			got, err := e.edit(e.hf, c.name, e.op(c.name, c.value), nil, 0)
			e.ok(err)
			if c.made == "" {
				e.equal(c.name, words(got.Changed, got.Version), "false -1")
				continue
			}
			e.equal(c.name, words(got.Changed, got.Version), "true 0")
			e.sameJSON(c.name, got.State, []byte(c.made))
			e.sameJSON(c.name, e.scope(c.name).State, []byte(c.made))
			e.equal("history", e.names(scopestore.Stream("user", c.name)), []string{c.name})
		}
	}},
	{"scope edit: changes what is there, with an event that tells what and by whom", func(e *env) {
		data := map[string]string{"inc": `{"field":"f","by":1,"value":2}`, "patch": `{"patch":{"f":{"x":1,"y":null}}}`, "push": `{"field":"f","value":{"x":1}}`, "set": `{"field":"f","key":"k","value":[1]}`, "unset": `{"field":"f","key":"k"}`}
		for _, c := range edits {
			_, err := e.put(e.hf, c.name, none, c.found)
			e.ok(err)
			got, err := e.edit(e.hf, c.name, e.op(c.name, c.value), at(0), 0)
			e.ok(err)
			e.equal(c.name, words(got.Changed, got.Version), "true 1")
			e.sameJSON(c.name, got.State, []byte(c.becomes))
			e.sameJSON(c.name, e.scope(c.name).State, []byte(c.becomes))
			all := e.history(scopestore.Stream("user", c.name))
			e.equal("events", words(len(all), all[1].Name, all[1].Actor), words(2, c.name, "me"))
			e.sameJSON("event of "+c.name, all[1].Data, []byte(data[c.name]))
		}
	}},
	{"scope edit: the same answers inside a transaction, and none of it after a rollback", func(e *env) {
		for _, undone := range []bool{true, false} {
			err := e.hf.Update(e.ctx, func(ctx context.Context, tx holdfast.Tx) error {
				in := &env{T: e.T, hf: e.hf, db: e.db, ctx: ctx}
				for _, c := range edits {
					if _, err := in.put(tx, c.name, none, c.found); err != nil {
						return err
					}
					got, err := in.edit(tx, c.name, e.op(c.name, c.value), nil, 0)
					if err != nil {
						return err
					}
					e.equal(c.name, words(got.Changed, got.Version), "true 1")
					e.sameJSON(c.name, got.State, []byte(c.becomes))
				}
				if undone {
					return errUndone
				}
				return nil
			})
			e.equal("update", errors.Is(err, errUndone), undone)
			_, err = scopestore.Get(e.ctx, engine.Of(e.hf), "user", "push")
			e.equal("there", fault.CodeOf(err) == fault.NotFound, undone)
		}
	}},
	{"scope edit: what changes nothing writes nothing", func(e *env) {
		_, err := e.put(e.hf, "u", none, `{"f":{"k":{"a":1,"b":[1,2]}}}`)
		e.ok(err)
		for _, op := range []scopestore.Op{e.op("patch", `{}`), e.op("patch", `{"f":{"k":{"b":[1.0,2]}}}`), e.op("set", `{"b":[1,2],"a":1e0}`)} {
			got, err := e.edit(e.hf, "u", op, nil, time.Hour)
			e.ok(err)
			e.equal("answer", words(got.Changed, got.Version), "false 0")
			e.sameJSON("state", got.State, []byte(`{"f":{"k":{"a":1,"b":[1,2]}}}`))
		}
		e.equal("history", e.names(scopestore.Stream("user", "u")), []string{"put"})
	}},
	{"scope edit: numbers are compared as they are written, also in a large state, and never by their order", func(e *env) {
		const one, two = "0.10000000000000000001", "0.10000000000000000002"
		record := func(a, b string) string {
			return `"b:` + one + `\\\",{}[1]":[` + strings.Repeat("0.5,", 2_000) + a + "," + b + `],"s":"\\",`
		}
		_, err := e.put(e.hf, "u", none, `{"f":{"k":{`+record(one, two)+`"y":1}},"l":[`+strings.Repeat("0.5,", 75_000)+`1],"x":`+one+`}`)
		e.ok(err)
		for i, c := range []struct {
			op      scopestore.Op
			changed bool
		}{
			{e.op("patch", `{"x":`+two+`}`), true},
			{e.op("patch", `{"x":`+two+`}`), false},
			{e.op("patch", `{"f":{"k":{"a":-1.5}}}`), true}, // on SQLite, the new member comes last
			{e.op("set", `{"a":-1.5,`+record(one, two)+`"y":1}`), false},
			{e.op("set", `{"a":-1.5,`+record(two, one)+`"y":1}`), true},
			{e.op("patch", `{"f":{"k":{"0":0.25}}}`), true},
			{e.op("set", `{"0":0.25,"a":-1.5,`+record(two, two)+`"y":1}`), true},
			{e.op("set", `{"0":0.25,"a":-1.5,`+record(two, two)+`"y":1}`), false},
		} {
			ctx, stop := context.WithTimeout(e.ctx, 10*time.Second)
			in := &env{T: e.T, hf: e.hf, db: e.db, ctx: ctx}
			got, err := in.edit(in.hf, "u", c.op, nil, 0)
			stop()
			e.ok(err)
			e.equal(fmt.Sprint("edit ", i, " changed"), got.Changed, c.changed)
		}
		e.equal("history", e.names(scopestore.Stream("user", "u")), []string{"put", "patch", "patch", "set", "patch", "set"})
	}},
	{"scope edit: refused, it leaves everything, and returns what it found", func(e *env) {
		for _, c := range []struct{ name, found string }{
			{"inc", `{"f":"1"}`}, {"inc", `{"f":9223372036854775807}`}, {"push", `{"f":{}}`}, {"set", `{"f":[]}`}, {"unset", `{"f":1}`},
		} {
			_, err := e.put(e.hf, c.name, nil, c.found)
			e.ok(err)
			before := e.scope(c.name).Version
			got, err := e.edit(e.hf, c.name, e.op(c.name, "1"), nil, 0)
			e.refused(err, fault.Validation)
			e.equal(c.name, words(got.Changed, got.Version), words(false, before))
			e.sameJSON(c.name, got.State, []byte(c.found))
			e.sameJSON(c.name, e.scope(c.name).State, []byte(c.found))
		}
		long := `"` + strings.Repeat("x", 700<<10) + `"`
		_, err := e.edit(e.hf, "long", e.op("push", long), nil, 0)
		e.ok(err)
		_, err = e.edit(e.hf, "long", e.op("push", long), nil, 0)
		e.refused(err, fault.PayloadTooLarge)
		e.equal("version", e.scope("long").Version, 0)
	}},
	{"scope edit: at another version it is refused, and told the true one", func(e *env) {
		some := at(scopestore.Some)
		for _, c := range edits {
			for _, want := range []*int64{at(0), some} {
				_, err := e.edit(e.hf, c.name, e.op(c.name, c.value), want, 0)
				e.equal(c.name, e.refused(err, fault.Concurrency).Fields["lastVersion"], -1)
			}
			_, err := e.put(e.hf, c.name, none, c.found)
			e.ok(err)
			for _, want := range []*int64{none, at(1), at(7)} {
				got, err := e.edit(e.hf, c.name, e.op(c.name, c.value), want, 0)
				e.equal(c.name, e.refused(err, fault.Concurrency).Fields["lastVersion"], 0)
				e.sameJSON(c.name, got.State, []byte(c.found))
			}
			got, err := e.edit(e.hf, c.name, e.op(c.name, c.value), some, 0)
			e.ok(err)
			e.equal(c.name, words(got.Changed, got.Version), "true 1")
		}
	}},
	{"scope edit: many callers at once, each with its own answer", func(e *env) {
		_, err := e.put(e.hf, "u", none, `{"text":"x"}`)
		e.ok(err)
		bad, err := scopestore.Inc("text", 1)
		e.ok(err)
		versions := make(chan int64, 24*10)
		won, lost := holdfasttest.Race(e.T, 24, func(i int) error {
			for n := range 10 {
				op, err := scopestore.Push(fmt.Sprint("l", i%3), []byte(fmt.Sprint(i*10+n)))
				if err != nil {
					return err
				}
				if i%6 == 5 {
					op = bad
				}
				got, err := e.edit(e.hf, "u", op, nil, 0)
				if i%6 == 5 {
					if fault.CodeOf(err) != fault.Validation || got.Changed {
						return fmt.Errorf("an invalid edit returned changed %v, %w", got.Changed, err)
					}
					continue
				}
				if err != nil || !got.Changed || !strings.Contains(string(got.State), fmt.Sprint(i*10+n)) {
					return fmt.Errorf("edit returned changed %t at version %d: %s, %w", got.Changed, got.Version, got.State, err)
				}
				versions <- got.Version
			}
			return nil
		})
		e.equal("won", words(won, lost), "24 []")
		close(versions)
		seen := map[int64]bool{}
		for v := range versions {
			seen[v] = true
		}
		e.equal("versions", words(len(seen), e.scope("u").Version), "200 200")
	}},
	// All expiry is in one case: the cases share a database, and a sweep covers all of it.
	{"scope expire: one that has ended is none, and is swept with an event, unless written meanwhile", func(e *env) {
		_, err := e.edit(e.hf, "u", e.op("inc", "x"), nil, time.Millisecond)
		e.ok(err)
		_, err = e.edit(e.hf, "kept", e.op("inc", "x"), nil, time.Hour)
		e.ok(err)
		_, err = scopestore.Put(e.ctx, engine.Of(e.hf), scopestore.PutArgs{Kind: "user", ID: "put", State: []byte(`{}`), TTL: time.Millisecond})
		e.ok(err)
		for _, id := range []string{"u", "put"} {
			for e.there(id) {
				runtime.Gosched()
			}
			_, err := scopestore.Delete(e.ctx, engine.Of(e.hf), scopestore.DeleteArgs{Kind: "user", ID: id})
			e.refused(err, fault.NotFound)
			_, err = e.put(e.hf, id, at(0), `{}`)
			e.moved(err, 0, -1)
		}
		_, err = e.edit(e.hf, "meanwhile", e.op("inc", "x"), nil, time.Millisecond)
		e.ok(err)
		for e.there("meanwhile") {
			runtime.Gosched()
		}
		anew, err := e.edit(e.hf, "meanwhile", e.op("inc", "x"), nil, 0) // before any sweep
		e.ok(err)
		e.equal("anew", words(anew.Changed, anew.Version), "true 1")
		_, err = scopestore.SweepAll(context.Background(), engine.Of(e.hf))
		e.ok(err)
		e.sameJSON("meanwhile", e.scope("meanwhile").State, []byte(`{"f":1}`))
		for id, made := range map[string]string{"u": "inc", "put": "put"} {
			e.equal("history", e.names(scopestore.Stream("user", id)), []string{made, "expired"})
			got, err := e.edit(e.hf, id, e.op("inc", "xx"), none, 0)
			e.ok(err)
			e.equal("anew", words(got.Changed, got.Version), "true 2")
			e.sameJSON("anew", got.State, []byte(`{"f":2}`))
		}
		e.equal("kept", e.there("kept"), true)
	}},
}

var errUndone = errors.New("rolled back")

// there reports whether a scope exists.
func (e *env) there(id string) bool {
	e.Helper()
	_, err := scopestore.Get(e.ctx, engine.Of(e.hf), "user", id)
	if fault.CodeOf(err) != fault.NotFound {
		e.ok(err)
	}
	return err == nil
}
