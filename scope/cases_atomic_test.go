package scope_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/scope"
)

var errMine = errors.New("mine")

// change has a function change the state of a scope as a T.
func change[T any](e *env, id string, f func(*T)) scope.Snapshot[T] {
	e.Helper()
	s, err := at[T](e, "thing", id).Atomic(e.ctx, func(_ context.Context, t T) (T, error) {
		f(&t)
		return t, nil
	})
	e.ok(err)
	return s
}

var atomicCases = []testCase{
	{"a function is given the state, and what it returns is the next", func(e *env) {
		s := change(e, "u", func(c *cart) { c.Items, c.Total = append(c.Items, "apples"), c.Total+3 })
		if !s.Changed || !s.Exists || s.Version != 0 || s.State.Total != 3 || len(s.State.Items) != 1 {
			e.Errorf("got %+v", s)
		}
		s = change(e, "u", func(c *cart) { c.Items, c.Total = append(c.Items, "pears"), c.Total*2 })
		if !s.Changed || s.Version != 1 || s.State.Total != 6 || len(s.State.Items) != 2 {
			e.Errorf("got %+v", s)
		}
		e.is("u", `{"items":["apples","pears"],"total":6}`, 1)
	}},
	{"fields that a T does not have are left as they are", func(e *env) {
		e.has("u", `{"total":1,"other":{"deep":[1,{"x":9007199254740993}]},"n":9007199254740993,"null":null}`)
		change(e, "u", func(c *cart) { c.Total = 2 })
		e.is("u", `{"total":2,"other":{"deep":[1,{"x":9007199254740993}]},"n":9007199254740993,"null":null}`, 1)
	}},
	{"fields inside fields that a T does not have are left as they are", func(e *env) {
		type nested struct {
			A struct {
				B struct {
					N int `json:"n"`
				} `json:"b"`
			} `json:"a"`
		}
		e.has("u", `{"a":{"b":{"n":1,"big":9007199254740993},"c":[9007199254740993]},"d":1}`)
		change(e, "u", func(n *nested) { n.A.B.N = 2 })
		e.is("u", `{"a":{"b":{"n":2,"big":9007199254740993},"c":[9007199254740993]},"d":1}`, 1)
	}},
	{"numbers too large for a T are left as they are where it is not touched", func(e *env) {
		e.has("u", `{"big":9007199254740993,"o":{"big":9007199254740993,"m":1},"l":[9007199254740993],"f":1.10,"n":1}`)
		s := change(e, "u", func(m *map[string]any) { (*m)["n"], (*m)["o"].(map[string]any)["m"] = 2, 2 })
		e.equal("n", s.State["n"], 2)
		e.is("u", `{"big":9007199254740993,"o":{"big":9007199254740993,"m":2},"l":[9007199254740993],"f":1.1,"n":2}`, 1)
	}},
	{"a field that is taken out is gone", func(e *env) {
		e.has("u", `{"items":["x"],"total":1,"other":1}`)
		change(e, "u", func(c *cart) { c.Items = nil }) // it is left out when it is empty
		e.is("u", `{"total":1,"other":1}`, 1)
		change(e, "u", func(m *map[string]any) { delete(*m, "other") })
		e.is("u", `{"total":1}`, 2)
		change(e, "u", func(m *map[string]any) { *m = map[string]any{} })
		e.is("u", `{}`, 3)
	}},
	{"lists and objects that a T sets to nil are made again by other verbs", func(e *env) {
		type lists struct {
			Items []string         `json:"items"`
			R     map[string]int64 `json:"r"`
			N     *int64           `json:"n"`
		}
		for range 2 {
			change(e, "u", func(l *lists) { l.Items, l.R, l.N = nil, nil, nil })
			u := at[lists](e, "thing", "u")
			_, err := u.Push(e.ctx, "items", "x")
			e.ok(err)
			_, err = u.SetRecord(e.ctx, "r", "k", 1)
			e.ok(err)
			_, err = u.Inc(e.ctx, "n", 2)
			e.ok(err)
		}
		e.is("u", `{"items":["x"],"r":{"k":1},"n":2}`, 7)
	}},
	{"items of a list that a function did not touch are left as they are", func(e *env) {
		big := "9007199254740993"
		e.has("u", `{"l":[`+big+`,1,{"big":`+big+`,"m":1},`+big+`]}`)
		list := func(m *map[string]any) []any { return (*m)["l"].([]any) }
		change(e, "u", func(m *map[string]any) { list(m)[1], list(m)[2].(map[string]any)["m"] = 2, 2 })
		e.is("u", `{"l":[`+big+`,2,{"big":`+big+`,"m":2},`+big+`]}`, 1)
		change(e, "u", func(m *map[string]any) { (*m)["l"] = append(list(m), "x") })
		e.is("u", `{"l":[`+big+`,2,{"big":`+big+`,"m":2},`+big+`,"x"]}`, 2)
		change(e, "u", func(m *map[string]any) { (*m)["l"] = slices.Delete(list(m), 1, 3) })
		e.is("u", `{"l":[`+big+`,`+big+`,"x"]}`, 3)
		change(e, "u", func(m *map[string]any) { (*m)["l"] = []any{} })
		e.is("u", `{"l":[]}`, 4)
	}},
	{"a field takes another type", func(e *env) {
		e.has("u", `{"a":{"x":1},"b":[1],"c":null}`)
		change(e, "u", func(m *map[string]any) {
			(*m)["a"], (*m)["b"], (*m)["c"] = []any{1}, map[string]any{"y": nil}, "x"
		})
		e.is("u", `{"a":[1],"b":{"y":null},"c":"x"}`, 1)
	}},
	{"a field that is written in another case is updated", func(e *env) {
		type untagged struct{ N int64 }
		for _, name := range []string{"n", "N"} {
			e.has(name, `{"`+name+`":1,"other":1}`)
			s := change(e, name, func(u *untagged) { u.N++ })
			e.equal("n", s.State.N, 2)
			s, err := at[untagged](e, "thing", name).Inc(e.ctx, name, 1)
			e.ok(err)
			e.equal("n after inc", s.State.N, 3)
			s = change(e, name, func(u *untagged) { u.N++ })
			e.equal("n at last", s.State.N, 4)
			e.is(name, `{"`+name+`":4,"other":1}`, 3)
		}
	}},
	{"of a field that is there in two cases, the update is not lost", func(e *env) {
		type untagged struct{ N int64 }
		e.has("u", `{"N":1,"n":5}`)
		before, err := at[untagged](e, "thing", "u").Get(e.ctx)
		e.ok(err)
		s := change(e, "u", func(u *untagged) { u.N++ })
		e.equal("n", s.State.N, before.State.N+1)
	}},
	{"a field that is written in another case is taken out", func(e *env) {
		type untagged struct {
			N int64 `json:",omitempty"`
		}
		e.has("u", `{"n":1,"other":1}`)
		s := change(e, "u", func(u *untagged) { u.N = 0 })
		e.equal("n", s.State.N, 0)
		e.is("u", `{"other":1}`, 1)
	}},
	{"inside a field that is written in another case, what a T does not have stays", func(e *env) {
		type untagged struct{ Inner struct{ X int } }
		e.has("u", `{"inner":{"x":1,"other":9007199254740993}}`)
		s := change(e, "u", func(u *untagged) { u.Inner.X++ })
		e.equal("x", s.State.Inner.X, 2)
		e.is("u", `{"inner":{"x":2,"other":9007199254740993}}`, 1)
	}},
	{"keys of a map that differ by case stay apart", func(e *env) {
		e.has("u", `{"Ab":1,"ab":1,"r":{"K":1,"k":1}}`)
		change(e, "u", func(m *map[string]any) { (*m)["ab"], (*m)["r"].(map[string]any)["K"], (*m)["AB"] = 2, 2, 3 })
		e.is("u", `{"Ab":1,"ab":2,"AB":3,"r":{"K":2,"k":1}}`, 1)
		change(e, "u", func(m *map[string]any) { delete(*m, "Ab") })
		e.is("u", `{"ab":2,"AB":3,"r":{"K":2,"k":1}}`, 2)
	}},
	{"a T may be anything that an object is", func(e *env) {
		e.has("u", `{"total":1,"items":["x"]}`)
		p := change(e, "u", func(c **cart) { (*c).Total++ })
		e.equal("pointer", p.State.Total, 2)
		m := change(e, "u", func(m *map[string]json.RawMessage) { (*m)["total"] = json.RawMessage("3") })
		e.equal("map", string(m.State["total"]), "3")
		a := change(e, "u", func(a *any) { (*a).(map[string]any)["total"] = 4 })
		e.equal("any", a.State.(map[string]any)["total"], 4)
		r := change(e, "u", func(r *json.RawMessage) { *r = json.RawMessage(strings.Replace(string(*r), "4", "5", 1)) })
		e.like(r, `{"total":5,"items":["x"]}`, 4, true)
	}},
	{"a state that is no T is an error, and nothing is lost", func(e *env) {
		e.has("u", `{"total":"many","items":["x"]}`)
		c := at[cart](e, "thing", "u")
		_, err := c.Get(e.ctx)
		if f := e.refused(err, fault.Internal); !strings.Contains(f.Message, "cart") || !strings.Contains(f.Message, `"u"`) {
			e.Errorf("%v does not name the kind and the id", err)
		}
		_, err = c.Atomic(e.ctx, func(_ context.Context, c cart) (cart, error) {
			e.Error("the function was called, want it not called")
			return c, nil
		})
		e.refused(err, fault.Internal)
		e.is("u", `{"total":"many","items":["x"]}`, 0)
	}},
	{"what is no object is no state", func(e *env) {
		e.has("u", `{"x":1}`)
		for _, doc := range []string{`[]`, `null`, `1`, `{"a":1,"a":2}`, `{"a":1}x`, ``, `{"a":"\ud800"}`, `{"a":"\u0000"}`} {
			_, err := e.raw("u").Atomic(e.ctx, func(context.Context, json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(doc), nil
			})
			e.refused(err, fault.Validation)
		}
		_, err := at[map[string]any](e, "thing", "u").Atomic(e.ctx, func(context.Context, map[string]any) (map[string]any, error) { return nil, nil })
		e.refused(err, fault.Validation)
		_, err = at[*cart](e, "thing", "u").Atomic(e.ctx, func(context.Context, *cart) (*cart, error) { return nil, nil })
		e.refused(err, fault.Validation)
		_, err = at[any](e, "thing", "u").Atomic(e.ctx, func(context.Context, any) (any, error) { return map[string]any{"f": func() {}}, nil })
		e.refused(err, fault.Validation)
		e.is("u", `{"x":1}`, 0)
	}},
	{"the error of a function is its caller's, and nothing is written", func(e *env) {
		e.has("u", full)
		for _, o := range [][]scope.Option{nil, {scope.ExpectVersion(0)}, {scope.Present()}} {
			for _, mine := range []error{errMine, holdfast.ErrConcurrency, holdfast.ErrNotFound, holdfast.ErrUnavailable, context.Canceled, context.DeadlineExceeded} {
				calls := 0
				s, err := at[cart](e, "thing", "u", o...).Atomic(e.ctx, func(_ context.Context, c cart) (cart, error) {
					calls++
					c.Total = 99
					return c, mine
				})
				if err != mine || s.Changed || calls != 1 { //nolint:errorlint // it is the very same
					e.Errorf("the function returned %v, but the caller got %v after %d calls", mine, err, calls)
				}
			}
		}
		e.is("u", full, 0)
	}},
	{"what a function is given, and what it returned, are not what is stored", func(e *env) {
		e.has("u", `{"items":["a","b"],"total":1}`)
		var kept map[string]any
		spoil := func(m map[string]any) {
			m["items"].([]any)[0] = "spoilt"
			m["total"] = -1
		}
		c := at[map[string]any](e, "thing", "u")
		_, err := c.Atomic(e.ctx, func(_ context.Context, m map[string]any) (map[string]any, error) {
			kept = m
			spoil(m)
			return nil, errMine
		})
		e.equal("error", err, errMine)
		e.is("u", `{"items":["a","b"],"total":1}`, 0)
		s, err := c.Atomic(e.ctx, func(_ context.Context, m map[string]any) (map[string]any, error) {
			kept = m
			m["total"] = 2
			return m, nil
		})
		e.ok(err)
		spoil(kept)
		spoil(s.State)
		got, err := c.Get(e.ctx)
		e.ok(err)
		spoil(got.State)
		e.is("u", `{"items":["a","b"],"total":2}`, 1)
		bytes, err := e.raw("u").Get(e.ctx)
		e.ok(err)
		clear(bytes.State)
		bytes, err = e.raw("u").Atomic(e.ctx, func(_ context.Context, d json.RawMessage) (json.RawMessage, error) {
			clear(d)
			return json.RawMessage(`{"items":["a","b"],"total":3}`), nil
		})
		e.ok(err)
		clear(bytes.State)
		e.is("u", `{"items":["a","b"],"total":3}`, 2)
	}},
	{"what a verb was given is not what is stored", func(e *env) {
		item, patch := map[string]any{"x": 1}, json.RawMessage(`{"p":{"x":1}}`)
		_, err := e.raw("u").Push(e.ctx, "l", item)
		e.ok(err)
		_, err = e.raw("u").SetRecord(e.ctx, "r", "k", item)
		e.ok(err)
		_, err = e.raw("u").Patch(e.ctx, patch)
		e.ok(err)
		item["x"] = 2
		clear(patch)
		e.is("u", `{"l":[{"x":1}],"r":{"k":{"x":1}},"p":{"x":1}}`, 2)
	}},
	{"a function that is called sees its context", func(e *env) {
		type key struct{}
		_, err := e.raw("u").Atomic(context.WithValue(e.ctx, key{}, "mine"), func(ctx context.Context, d json.RawMessage) (json.RawMessage, error) {
			e.equal("value", ctx.Value(key{}), "mine")
			return d, nil
		})
		e.ok(err)
	}},
	{"the state is read while it is changed", func(e *env) {
		e.has("u", full)
		_, err := e.raw("u").Atomic(e.ctx, func(ctx context.Context, d json.RawMessage) (json.RawMessage, error) {
			s, err := e.raw("u").Get(ctx)
			e.like(s, full, 0, false)
			return json.RawMessage(`{}`), err
		})
		e.ok(err)
		e.is("u", `{}`, 1)
	}},
}

func isCanceled(err error) bool { return errors.Is(err, context.Canceled) }
