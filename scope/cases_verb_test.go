package scope_test

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/scope"
)

var verbCases = []testCase{
	{"one that is not there reads as an empty object", func(e *env) {
		e.isNone("u")
		s, err := at[cart](e, "thing", "u").Get(e.ctx)
		e.ok(err)
		if s.Exists || s.Version != -1 || s.State.Total != 0 || s.Kind != "thing" || s.ID != "u" {
			e.Errorf("got %+v", s)
		}
		e.equal("history", e.history("thing", "u"), "[]")
	}},
	{"each verb makes what is missing", func(e *env) {
		made := map[string]string{
			"patch": `{"p":true}`, "inc": `{"n":1}`, "push": `{"l":["x"]}`, "set": `{"r":{"k":"x"}}`, "atomic": `{"a":1}`,
		}
		for _, v := range verbs {
			s, err := v.do(e.ctx, e.raw(v.name))
			e.ok(err)
			if doc, makes := made[v.name]; makes {
				e.like(s, doc, 0, true)
				e.is(v.name, doc, 0)
				continue
			}
			e.absent(s, -1, false)
			e.isNone(v.name)
		}
	}},
	{"each verb changes what is there, and adds one to the version", func(e *env) {
		for _, v := range verbs {
			e.has(v.name, full)
			s, err := v.do(e.ctx, e.raw(v.name))
			e.ok(err)
			if v.name == "delete" {
				e.absent(s, 1, true)
				e.isNone(v.name)
				continue
			}
			e.like(s, after[v.name], 1, true)
			e.is(v.name, after[v.name], 1)
		}
	}},
	{"the history tells every change by its verb", func(e *env) {
		e.has("u", full)
		for _, v := range verbs {
			_, err := v.do(e.ctx, e.raw("u"))
			e.ok(err)
			if v.name == "unset" {
				e.has("u", full)
			}
		}
		if got := e.history("thing", "u"); got != nil {
			e.equal("history", got, "[put patch inc push set unset put put deleted]")
		}
	}},
	{"a patch is a merge patch", func(e *env) {
		for _, c := range []struct{ state, patch, want string }{
			{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
			{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
			{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
			{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
			{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
			{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
			{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
			{`{"a":"foo"}`, `{"a":{"b":{"c":null,"d":[null]}}}`, `{"a":{"b":{"d":[null]}}}`},
			{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
			{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
			{`{"e":null,"a":1}`, `{"e":null}`, `{"a":1}`},
		} {
			e.has("u", c.state)
			s, err := e.raw("u").Patch(e.ctx, json.RawMessage(c.patch))
			e.ok(err)
			e.like(s, c.want, s.Version, true)
			e.is("u", c.want, s.Version)
		}
	}},
	{"a patch is what anything marshals to, if that is an object", func(e *env) {
		s, err := e.raw("u").Patch(e.ctx, cart{Total: 3})
		e.ok(err)
		e.like(s, `{"total":3}`, 0, true)
		for _, bad := range []any{nil, 1, "x", []int{1}, (*cart)(nil), json.RawMessage(`{"a":1,"a":2}`), json.RawMessage(`{`), func() {}, math.NaN()} {
			_, err := e.raw("u").Patch(e.ctx, bad)
			e.refused(err, fault.Validation)
		}
		e.is("u", `{"total":3}`, 0)
	}},
	{"what a verb cannot be made on is refused, and left as it is", func(e *env) {
		for i, c := range []struct{ field, verb string }{
			{`"n":"1"`, "inc"}, {`"n":1.5`, "inc"}, {`"n":{}`, "inc"}, {`"n":[]`, "inc"}, {`"n":true`, "inc"},
			{`"n":9223372036854775808`, "inc"}, {`"n":9223372036854775807`, "inc"}, {`"n":-9223372036854775809`, "inc"},
			{`"l":{}`, "push"}, {`"l":1`, "push"}, {`"l":"x"`, "push"},
			{`"r":[]`, "set"}, {`"r":"x"`, "set"}, {`"r":[]`, "unset"}, {`"r":1`, "unset"},
		} {
			id, doc := string(rune('a'+i)), `{"x":1,`+c.field+`}`
			e.has(id, doc)
			s, err := verbOf(c.verb).do(e.ctx, e.raw(id))
			f := e.refused(err, fault.Validation)
			if s.Changed || len(f.Violations) != 1 || !strings.Contains(f.Message, `"`+c.field[1:2]+`"`) {
				e.Errorf("%s of %s: %+v, %v, %v", c.verb, doc, s, err, f.Violations)
			}
			e.is(id, doc, 0)
			if got := e.history("thing", id); got != nil {
				e.equal("history", got, "[put]")
			}
		}
	}},
	{"sums go up to the limits of 64 bits, and no further", func(e *env) {
		for _, c := range []struct {
			by   int64
			want string
		}{{math.MaxInt64 - 1, `{"n":9223372036854775806}`}, {1, `{"n":9223372036854775807}`}, {1, ""}, {math.MaxInt64, ""},
			{math.MinInt64, `{"n":-1}`}, {math.MinInt64, ""}, {math.MinInt64 + 1, `{"n":-9223372036854775808}`}, {-1, ""}, {math.MaxInt64, `{"n":-1}`}} {
			s, err := e.raw("u").Inc(e.ctx, "n", c.by)
			if c.want == "" {
				e.refused(err, fault.Validation)
				continue
			}
			e.ok(err)
			e.like(s, c.want, s.Version, true)
		}
		e.is("u", `{"n":-1}`, 4)
	}},
	{"what changes nothing says so, and writes nothing", func(e *env) {
		e.has("u", `{"n":5,"l":[1,{"a":1e2}],"r":{"k":{"a":1,"b":2}},"o":{"x":1}}`)
		nothing := map[string]func(raw) (scope.Snapshot[json.RawMessage], error){
			"patch {}": func(s raw) (scope.Snapshot[json.RawMessage], error) { return s.Patch(e.ctx, map[string]any{}) },
			"the same": func(s raw) (scope.Snapshot[json.RawMessage], error) {
				return s.Patch(e.ctx, json.RawMessage(`{"n":5}`))
			},
			"the same, 5.0": func(s raw) (scope.Snapshot[json.RawMessage], error) {
				return s.Patch(e.ctx, json.RawMessage(`{"n":5.0}`))
			},
			"the same, 50e-1": func(s raw) (scope.Snapshot[json.RawMessage], error) {
				return s.Patch(e.ctx, json.RawMessage(`{"n":50e-1}`))
			},
			"null of none": func(s raw) (scope.Snapshot[json.RawMessage], error) {
				return s.Patch(e.ctx, json.RawMessage(`{"no":null}`))
			},
			"null inside": func(s raw) (scope.Snapshot[json.RawMessage], error) {
				return s.Patch(e.ctx, json.RawMessage(`{"o":{"no":null}}`))
			},
			"inc by 0": func(s raw) (scope.Snapshot[json.RawMessage], error) { return s.Inc(e.ctx, "n", 0) },
			"the same record": func(s raw) (scope.Snapshot[json.RawMessage], error) {
				return s.SetRecord(e.ctx, "r", "k", json.RawMessage(`{"b":2.0,"a":1}`))
			},
			"no such record":  func(s raw) (scope.Snapshot[json.RawMessage], error) { return s.DeleteRecord(e.ctx, "r", "no") },
			"no such records": func(s raw) (scope.Snapshot[json.RawMessage], error) { return s.DeleteRecord(e.ctx, "no", "no") },
			"the same state": func(s raw) (scope.Snapshot[json.RawMessage], error) {
				return s.Atomic(e.ctx, func(_ context.Context, d json.RawMessage) (json.RawMessage, error) { return d, nil })
			},
			"the same state in another order": func(s raw) (scope.Snapshot[json.RawMessage], error) {
				return s.Atomic(e.ctx, func(context.Context, json.RawMessage) (json.RawMessage, error) {
					return json.RawMessage(`{"o":{"x":1.0},"r":{"k":{"b":2,"a":1}},"l":[1,{"a":100}],"n":5}`), nil
				})
			},
		}
		for name, do := range nothing {
			s, err := do(e.raw("u"))
			if err != nil || s.Changed || s.Version != 0 || !s.Exists {
				e.Errorf("%s: changed %t, version %d, %v", name, s.Changed, s.Version, err)
			}
		}
		e.is("u", `{"n":5,"l":[1,{"a":100}],"r":{"k":{"a":1,"b":2}},"o":{"x":1}}`, 0)
		if got := e.history("thing", "u"); got != nil {
			e.equal("history", got, "[put]")
		}
	}},
	{"null as an item, as a record, as a value of a patch", func(e *env) {
		e.has("u", `{"keep":1}`)
		_, err := e.raw("u").Push(e.ctx, "l", nil)
		e.ok(err)
		_, err = e.raw("u").SetRecord(e.ctx, "r", "k", nil)
		e.ok(err)
		e.is("u", `{"keep":1,"l":[null],"r":{"k":null}}`, 2)
		s, err := e.raw("u").DeleteRecord(e.ctx, "r", "k")
		e.ok(err)
		e.like(s, `{"keep":1,"l":[null],"r":{}}`, 3, true)
		_, err = e.raw("u").Patch(e.ctx, map[string]any{"l": nil})
		e.ok(err)
		e.is("u", `{"keep":1,"r":{}}`, 4)
	}},
	{"a field that is null is as one that is missing", func(e *env) {
		e.has("u", `{"n":null,"l":null,"r":null}`)
		s, err := verbOf("unset").do(e.ctx, e.raw("u"))
		e.ok(err)
		e.like(s, `{"n":null,"l":null,"r":null}`, 0, false)
		for _, v := range []string{"inc", "push", "set"} {
			_, err := verbOf(v).do(e.ctx, e.raw("u"))
			e.ok(err)
		}
		e.is("u", `{"n":1,"l":["x"],"r":{"k":"x"}}`, 3)
		e.has("u", `{"n":null}`)
		s, err = e.raw("u").Inc(e.ctx, "n", 0)
		e.ok(err)
		e.like(s, `{"n":0}`, 5, true)
	}},
	{"what a T could not read is refused before it is made", func(e *env) {
		c := at[cart](e, "thing", "u")
		_, err := c.Inc(e.ctx, "total", 1)
		e.ok(err)
		_, push := c.Push(e.ctx, "total", 1)
		_, set := c.SetRecord(e.ctx, "items", "k", 1)
		_, inc := c.Inc(e.ctx, "items", 1)
		_, patch := c.Patch(e.ctx, map[string]any{"total": "many"})
		_, item := c.Push(e.ctx, "items", 1)
		for _, err := range []error{push, set, inc, patch, item} {
			e.refused(err, fault.Validation)
		}
		e.is("u", `{"total":1}`, 0)
	}},
	{"the history tells who it was", func(e *env) {
		for _, v := range verbs {
			_, err := v.do(e.ctx, e.raw("u", scope.By(v.name+"er")))
			e.ok(err)
		}
		for i, actor := range e.actors("thing", "u") {
			e.equal("actor", actor, []string{"patcher", "incer", "pusher", "seter", "unseter", "atomicer", "deleteer"}[i])
		}
	}},
	{"numbers survive whatever they are", func(e *env) {
		doc := `{"big":9007199254740993,"e":1e2,"one":1.0,"small":0.1,"min":-9223372036854775808,"huge":123456789012345678901234567890,"f":1.2345678901234567890123}`
		e.has("u", doc)
		e.is("u", doc, 0)
		for _, verb := range []string{"inc", "push", "set", "patch"} {
			_, err := verbOf(verb).do(e.ctx, e.raw("u"))
			e.ok(err)
		}
		s, err := e.raw("u").Patch(e.ctx, map[string]any{"n": nil, "l": nil, "r": nil, "p": nil})
		e.ok(err)
		e.like(s, doc, 5, true)
		for _, field := range []string{"big", "e", "one"} {
			_, err := e.raw("u").Inc(e.ctx, field, 1)
			e.ok(err)
		}
		n, err := at[map[string]json.Number](e, "thing", "u").Get(e.ctx)
		e.ok(err)
		e.equal("sums", n.State["big"]+" "+n.State["e"]+" "+n.State["one"], "9007199254740994 101 2")
	}},
	{"numbers that differ in the last digit are different", func(e *env) {
		for _, c := range []struct{ is, to string }{
			{"9223372036854775808", "9223372036854775809"},
			{"9007199254740993", "9007199254740992"},
			{"0.10000000000000000001", "0.10000000000000000002"},
			{"123456789012345678901234567890", "123456789012345678901234567891"},
		} {
			e.has("u", `{"n":`+c.is+`,"r":{"k":`+c.is+`}}`)
			s, err := e.raw("u").Patch(e.ctx, json.RawMessage(`{"n":`+c.to+`}`))
			e.ok(err)
			e.like(s, `{"n":`+c.to+`,"r":{"k":`+c.is+`}}`, s.Version, true)
			s, err = e.raw("u").SetRecord(e.ctx, "r", "k", json.RawMessage(c.to))
			e.ok(err)
			e.like(s, `{"n":`+c.to+`,"r":{"k":`+c.to+`}}`, s.Version, true)
		}
	}},
	{"a number that is too long without its exponent is refused, and what is taken can be changed", func(e *env) {
		e.has("u", `{"n":1,"x":1e-398}`)
		long := json.RawMessage("1e-400")
		_, patch := e.raw("u").Patch(e.ctx, map[string]any{"x": long})
		_, push := e.raw("u").Push(e.ctx, "x", long)
		_, set := e.raw("u").SetRecord(e.ctx, "x", "k", long)
		_, atomic := e.raw("u").Atomic(e.ctx, func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"x":1e-400}`), nil
		})
		for err, pointer := range map[error]string{patch: "/x", push: "/x/0", set: "/x/k", atomic: "/x"} {
			e.equal("pointer", e.refused(err, fault.Validation).Fields["pointer"], pointer)
		}
		many := map[string]any{"n": nil}
		for i := range 201 {
			many["m"+strconv.Itoa(i)] = nil
		}
		s, err := e.raw("u").Patch(e.ctx, many)
		e.ok(err)
		e.like(s, `{"x":1e-398}`, 1, true)
		change(e, "u", func(m *map[string]any) { (*m)["n"] = 2 })
		e.is("u", `{"n":2,"x":1e-398}`, 2)
	}},
	{"what is too deep is refused", func(e *env) {
		deep := func(levels int) json.RawMessage {
			return json.RawMessage(strings.Repeat("[", levels) + strings.Repeat("]", levels))
		}
		e.has("u", `{"x":1}`)
		_, err := e.raw("u").Push(e.ctx, "l", deep(62))
		e.ok(err)
		_, err = e.raw("u").SetRecord(e.ctx, "r", "k", deep(62))
		e.ok(err)
		_, err = e.raw("u").Patch(e.ctx, map[string]any{"p": deep(63)})
		e.ok(err)
		_, err = e.raw("u").Push(e.ctx, "l", deep(63))
		e.refused(err, fault.Validation)
		_, err = e.raw("u").SetRecord(e.ctx, "r", "k", deep(63))
		e.refused(err, fault.Validation)
		_, err = e.raw("u").Patch(e.ctx, map[string]any{"p": deep(64)})
		e.refused(err, fault.Validation)
		_, err = e.raw("u").Atomic(e.ctx, func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"a":` + string(deep(64)) + `}`), nil
		})
		e.refused(err, fault.Validation)
		s, err := e.raw("u").Get(e.ctx)
		e.ok(err)
		e.equal("version", s.Version, 3)
	}},
}

// largeCases are those with states near the limit: they take long.
var largeCases = []testCase{
	{"a state of what T lacks and what it has is no larger than another", func(e *env) {
		e.has("u", `{"other":"`+strings.Repeat("x", 700<<10)+`"}`)
		_, err := at[struct{ Mine string }](e, "thing", "u").Atomic(e.ctx, func(_ context.Context, t struct{ Mine string }) (struct{ Mine string }, error) {
			t.Mine = strings.Repeat("y", 700<<10)
			return t, nil
		})
		e.refused(err, fault.PayloadTooLarge)
		s, err := e.raw("u").Get(e.ctx)
		e.ok(err)
		e.equal("version", s.Version, 0)
	}},
	{"a state has a megabyte, and not much more", func(e *env) {
		long := strings.Repeat("x", 900<<10)
		e.has("u", `{"t":"`+long+`"}`)
		for name, err := range oversizeErrors(e, "u", long) {
			if fault.CodeOf(err) != fault.PayloadTooLarge {
				e.Errorf("%s: %v", name, err)
			}
		}
		e.is("u", `{"t":"`+long+`"}`, 0)
		s, err := e.raw("u").Push(e.ctx, "l", "x")
		e.ok(err)
		e.equal("version", s.Version, 1)
		_, err = e.raw("none").Push(e.ctx, "l", long+long)
		e.refused(err, fault.PayloadTooLarge)
		e.isNone("none")
	}},
	{"many small things are no more than their text", func(e *env) {
		numbers := strings.Repeat("1,", 140_000)
		e.has("u", `{"l":[`+numbers+`2]}`)
		for _, v := range []string{"push", "inc", "set", "patch"} {
			_, err := verbOf(v).do(e.ctx, e.raw("u"))
			e.ok(err)
		}
		s, err := e.raw("u").Patch(e.ctx, map[string]any{"l": []int{1}})
		e.ok(err)
		e.like(s, `{"l":[1],"n":1,"r":{"k":"x"},"p":true}`, 5, true)
	}},
	{"what makes a state smaller is never refused", func(e *env) {
		long := strings.Repeat("x", 1<<20-100)
		e.has("u", `{"r":{"a":1},"t":"`+long+`"}`)
		_, err := e.raw("u").Push(e.ctx, "l", strings.Repeat("y", 200))
		e.refused(err, fault.PayloadTooLarge)
		_, err = e.raw("u").DeleteRecord(e.ctx, "r", "a")
		e.ok(err)
		s, err := e.raw("u").Patch(e.ctx, map[string]any{"t": nil})
		e.ok(err)
		e.like(s, `{"r":{}}`, 2, true)
	}},
}

// oversizeErrors calls every verb that adds to a state with a text that makes it too large.
func oversizeErrors(e *env, id, text string) map[string]error {
	s, failed := e.raw(id), map[string]error{}
	_, failed["patch"] = s.Patch(e.ctx, map[string]any{"more": text})
	_, failed["push"] = s.Push(e.ctx, "more", text)
	_, failed["set"] = s.SetRecord(e.ctx, "more", "k", text)
	_, failed["atomic"] = at[struct {
		More string `json:"more"`
	}](e, "thing", id).Atomic(e.ctx, func(_ context.Context, t struct {
		More string `json:"more"`
	}) (struct {
		More string `json:"more"`
	}, error) {
		t.More = text
		return t, nil
	})
	return failed
}

func verbOf(name string) verb {
	for _, v := range verbs {
		if v.name == name {
			return v
		}
	}
	panic("there is no verb " + name)
}

// cart is a state as a program has it.
type cart struct {
	Items []string `json:"items,omitempty"`
	Total int64    `json:"total"`
}
