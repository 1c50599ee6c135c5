package definitions

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// get takes a member or an item. What is not there is nil.
func get(m *meter, args []any) (any, error) {
	switch of := args[0].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		name, ok := args[1].(string)
		if !ok {
			return nil, wrong("an object", args[1], "the name of a member")
		}
		return of[name], nil
	case []any:
		i, ok := wholeOf(args[1])
		if !ok {
			return nil, wrong("a list", args[1], "the number of an item")
		}
		if i < 0 {
			i += len(of)
		}
		if i < 0 || i >= len(of) {
			return nil, nil
		}
		return of[i], nil
	}
	return nil, refuse("%s has no members: take one of an object or a list", kindOf(args[0]))
}

func boolOf(_ *meter, args []any) (any, error) {
	if _, ok := args[0].(bool); !ok {
		return nil, wrong("a condition", args[0], "true or false")
	}
	return args[0], nil
}

func not(_ *meter, args []any) (any, error) {
	b, ok := args[0].(bool)
	if !ok {
		return nil, wrong("not", args[0], "true or false")
	}
	return !b, nil
}

// loop pays for going through a list. The second argument is what one turn costs, beside
// what it does.
func loop(m *meter, args []any) (any, error) {
	all, err := listOf("a loop", args[0])
	if err != nil {
		return nil, err
	}
	turn, _ := args[1].(int)
	return all, m.pay(len(all) * turn)
}

func listOf(what string, v any) ([]any, error) {
	all, ok := v.([]any)
	if !ok {
		return nil, wrong(what, v, "a list")
	}
	return all, nil
}

func lenOf(m *meter, args []any) (any, error) {
	switch v := args[0].(type) {
	case string:
		return utf8.RuneCountInString(v), m.payText(v)
	case []any:
		return len(v), nil
	case map[string]any:
		return len(v), nil
	}
	return nil, wrong("len", args[0], "a text, a list or an object")
}

// keysOf returns the names of an object's members in order.
func keysOf(m *meter, args []any) (any, error) {
	names, _, err := members(m, "keys", args[0])
	return names, err
}

// valuesOf returns an object's values in the order of their names.
func valuesOf(m *meter, args []any) (any, error) {
	_, all, err := members(m, "values", args[0])
	return all, err
}

func members(m *meter, what string, v any) (names, all []any, err error) {
	of, ok := v.(map[string]any)
	if !ok {
		return nil, nil, wrong(what, v, "an object")
	}
	if err := m.pay(2 * len(of)); err != nil {
		return nil, nil, err
	}
	names, all = make([]any, 0, len(of)), make([]any, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		names, all = append(names, name), append(all, of[name])
	}
	return names, all, nil
}

func firstOf(m *meter, args []any) (any, error) {
	all, err := listOf("first", args[0])
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[0], nil
}

func lastOf(m *meter, args []any) (any, error) {
	all, err := listOf("last", args[0])
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[len(all)-1], nil
}

func takeOf(m *meter, args []any) (any, error) {
	all, err := listOf("take", args[0])
	if err != nil {
		return nil, err
	}
	n, ok := wholeOf(args[1])
	if !ok || n < 0 {
		return nil, refuse("take wants how many items to take, 0 or more")
	}
	return all[:min(n, len(all)):min(n, len(all))], nil
}

func equals(m *meter, args []any) (any, error) { return same(m, args[0], args[1]) }

func differs(m *meter, args []any) (any, error) {
	equal, err := same(m, args[0], args[1])
	return !equal, err
}

// same compares two values. Numbers are the same if they are worth the same.
func same(m *meter, a, b any) (bool, error) {
	if err := m.pay(1); err != nil {
		return false, err
	}
	switch x := a.(type) {
	case nil:
		return b == nil, nil
	case bool:
		return a == b, nil
	case string:
		y, ok := b.(string)
		return ok && x == y, m.payText(x)
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		return sameItems(m, x, y)
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false, nil
		}
		return sameMembers(m, x, y)
	}
	return isNumber(b) && order(a, b) == 0, nil
}

func sameItems(m *meter, x, y []any) (bool, error) {
	for i := range x {
		if equal, err := same(m, x[i], y[i]); !equal || err != nil {
			return false, err
		}
	}
	return true, nil
}

// sameMembers goes by the order of the names, so that what it pays is always the same.
func sameMembers(m *meter, x, y map[string]any) (bool, error) {
	if err := m.pay(len(x)); err != nil {
		return false, err
	}
	for _, name := range slices.Sorted(maps.Keys(x)) {
		other, ok := y[name]
		if !ok {
			return false, nil
		}
		if equal, err := same(m, x[name], other); !equal || err != nil {
			return false, err
		}
	}
	return true, nil
}

// in looks for an item in a list, or for a name among an object's members.
func in(m *meter, args []any) (any, error) {
	switch of := args[1].(type) {
	case nil:
		return false, nil
	case map[string]any:
		name, ok := args[0].(string)
		if !ok {
			return false, nil
		}
		_, ok = of[name]
		return ok, nil
	case []any:
		for _, it := range of {
			if equal, err := same(m, args[0], it); equal || err != nil {
				return equal, err
			}
		}
		return false, nil
	}
	return nil, wrong("in", args[1], "a list or an object")
}

// scope is what expressions that are worked out together share: the variables, each read
// once, and the budget.
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
func (sc *scope) get(name string) (any, error) {
	if v, ok := sc.ready[name]; ok {
		return v, nil
	}
	raw := sc.raw[name]
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	v, err := decode(raw)
	if err != nil {
		return nil, refuse("%s is no JSON", name).Wrap(err)
	}
	sc.ready[name] = v
	return v, nil
}

// decode reads JSON. A whole number of 64 bits is an int; any other stays as it is
// written until something is done with it, so that what is only passed on is not changed.
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
