package workflow

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// get returns a member or an item, or nil if there is none.
func get(m *meter, args []any) any {
	switch of := args[0].(type) {
	case nil:
		return nil
	case map[string]any:
		name, ok := args[1].(string)
		if !ok {
			panic(wrong("an object", args[1], "the name of a member"))
		}
		m.payText(name)
		return of[name]
	case []any:
		i, ok := integerOf(args[1])
		if !ok {
			panic(wrong("a list", args[1], "the index of an item"))
		}
		if i < 0 {
			i += len(of)
		}
		if i < 0 || i >= len(of) {
			return nil
		}
		return of[i]
	}
	panic(refuse("%s has no members: use an object or a list", kindOf(args[0])))
}

func not(_ *meter, args []any) any {
	b, ok := args[0].(bool)
	if !ok {
		panic(wrong("not", args[0], "a boolean"))
	}
	return !b
}

// listed returns a list literal. Eight items take as much memory as 128 bytes of text.
func listed(m *meter, args []any) any {
	m.pay(len(args) / 8)
	return args
}

// objectOf returns an object literal from alternating names and values. The first of a name wins.
func objectOf(m *meter, args []any) any {
	m.pay(len(args) / 8)
	made := make(map[string]any, len(args)/2)
	for i := len(args) - 2; i >= 0; i -= 2 {
		name, ok := args[i].(string)
		if !ok {
			panic(refuse("the expression cannot be evaluated: a member name must be a string"))
		}
		m.payText(name)
		made[name] = args[i+1]
	}
	return made
}

func listOf(what string, v any) []any {
	all, ok := v.([]any)
	if !ok {
		panic(wrong(what, v, "a list"))
	}
	return all
}

func lenOf(m *meter, args []any) any {
	switch v := args[0].(type) {
	case string:
		m.payText(v)
		return utf8.RuneCountInString(v)
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	}
	panic(wrong("len", args[0], "a string, a list or an object"))
}

func keysOf(m *meter, args []any) any {
	names, _ := members(m, "keys", args[0])
	return names
}

func valuesOf(m *meter, args []any) any {
	_, all := members(m, "values", args[0])
	return all
}

// members returns the names of an object in order, and its values in the order of names.
func members(m *meter, what string, v any) (names, all []any) {
	of, ok := v.(map[string]any)
	if !ok {
		panic(wrong(what, v, "an object"))
	}
	m.pay(2 * len(of))
	names, all = make([]any, 0, len(of)), make([]any, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		names, all = append(names, name), append(all, of[name])
	}
	return names, all
}

// item returns a function for the item of a list at an index, or nil if there is none.
func item(what string, index int) operation {
	return func(m *meter, args []any) any { return get(m, []any{listOf(what, args[0]), index}) }
}

func takeOf(_ *meter, args []any) any {
	all := listOf("take", args[0])
	n, ok := integerOf(args[1])
	if !ok || n < 0 {
		panic(refuse("take requires the number of items to take, 0 or more"))
	}
	return slices.Clip(all[:min(n, len(all))])
}

func equals(m *meter, args []any) any  { return same(m, args[0], args[1]) }
func differs(m *meter, args []any) any { return !same(m, args[0], args[1]) }

// same compares two values. Numbers are compared by value.
func same(m *meter, a, b any) bool {
	m.pay(1)
	switch x := a.(type) {
	case nil:
		return b == nil
	case bool:
		return a == b
	case string:
		m.payText(x)
		return a == b
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, func(v, w any) bool { return same(m, v, w) })
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && len(x) == len(y) && sameMembers(m, x, y)
	}
	return isNumber(b) && order(a, b) == 0
}

// sameMembers compares in the order of names, so that the cost is always the same.
func sameMembers(m *meter, x, y map[string]any) bool {
	m.pay(len(x))
	for _, name := range slices.Sorted(maps.Keys(x)) {
		if other, ok := y[name]; !ok || !same(m, x[name], other) {
			return false
		}
	}
	return true
}

// in searches for an item in a list, or for a name in an object.
func in(m *meter, args []any) any {
	switch of := args[1].(type) {
	case nil:
		return false
	case map[string]any:
		name, ok := args[0].(string)
		if ok {
			m.payText(name)
			_, ok = of[name]
		}
		return ok
	case []any:
		return slices.ContainsFunc(of, func(it any) bool { return same(m, args[0], it) })
	}
	panic(wrong("in", args[1], "a list or an object"))
}

// scope is shared by expressions that are evaluated together: the variables, each decoded once,
// and the budget.
type scope struct {
	meter meter
	raw   map[string]json.RawMessage
	ready map[string]any
}

func newScope(env Env) *scope {
	return &scope{
		meter: meter{left: budget},
		raw:   map[string]json.RawMessage{"input": env.Input, "state": env.State, "steps": env.Steps, "run": env.Run},
		ready: make(map[string]any),
	}
}

// get returns a variable.
func (sc *scope) get(name string) any {
	v, ok := sc.ready[name]
	if !ok {
		raw := sc.raw[name]
		if len(raw) == 0 {
			raw = json.RawMessage("{}")
		}
		var err error
		if v, err = decode(raw); err != nil {
			panic(refuse("%s is not valid JSON", name).Wrap(err))
		}
		sc.ready[name] = v
	}
	return v
}

// decode decodes JSON. A 64-bit integer becomes an int. Any other number stays as it is written until
// it is used, so that a value that is only passed on does not change.
func decode(doc []byte) (v any, err error) {
	dec := json.NewDecoder(strings.NewReader(string(doc)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return exact(v), nil
}

func exact(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil && v != "-0" && int64(int(n)) == n {
			return int(n)
		}
	case []any:
		for i := range v {
			v[i] = exact(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = exact(v[name])
		}
	}
	return v
}
