package workflow

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/configdoc"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Render replaces every string in a value that begins with = by the result of the expression after
// it; the whole value may be one. A string that begins with == stands for one that begins with =.
// Nothing else changes, except the order of members. The expressions of one value share a budget. An
// empty value is null. An error is a [fault.Validation].
func Render(v Value, env Env) (json.RawMessage, error) {
	if len(v) == 0 {
		return json.RawMessage("null"), nil
	}
	if err := strictjson.Check(v); err != nil {
		return nil, err
	}
	parsed, err := decode(v)
	if err != nil {
		return nil, refuse("the value is not valid JSON").Wrap(err)
	}
	rendered, err := render(parsed, newScope(env))
	if err != nil {
		return nil, err
	}
	return result(rendered)
}

func render(v any, sc *scope) (any, error) {
	switch v := v.(type) {
	case string:
		return renderText(v, sc)
	case []any:
		for i, it := range v {
			made, err := render(it, sc)
			if err != nil {
				return nil, err
			}
			v[i] = made
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			made, err := render(v[name], sc)
			if err != nil {
				return nil, err
			}
			v[name] = made
		}
	}
	return v, nil
}

func renderText(s string, sc *scope) (any, error) {
	text, is := expression(s)
	if !is {
		return text, nil
	}
	e, err := Compile(text)
	if err != nil {
		return nil, err
	}
	return e.value(sc)
}

// expression returns the expression in a string; or, if it is not an expression, the string that
// it stands for.
func expression(s string) (text string, is bool) {
	switch {
	case strings.HasPrefix(s, "=="):
		return s[1:], false
	case strings.HasPrefix(s, "="):
		return s[1:], true
	}
	return s, false
}

// result encodes the result of an expression if it is not too large: a list may contain the same
// large object many times.
func result(v any) (json.RawMessage, error) {
	if weight(v, maxText) > maxText {
		return nil, refuse("the result of the expression exceeds %d bytes: make it smaller", maxText)
	}
	doc, err := encode(v)
	if err != nil {
		return nil, refuse("the expression returns a number that JSON cannot represent (infinite or NaN)").Wrap(err)
	}
	if err := strictjson.Check(doc); err != nil {
		return nil, err
	}
	return doc, nil
}

// weight returns a lower bound for the JSON size of a value; it stops counting at the limit.
func weight(v any, limit int) (n int) {
	switch v := v.(type) {
	case string:
		return len(v) + 2
	case []any:
		for _, it := range v {
			if n += weight(it, limit-n) + 1; n > limit {
				return n
			}
		}
	case map[string]any:
		for name, it := range v {
			if n += len(name) + 4 + weight(it, limit-n); n > limit {
				return n
			}
		}
	}
	return n + 1
}

// expressions calls f with each expression in a value, and its JSON pointer.
func expressions(v Value, path string, f func(path, text string)) {
	if parsed, err := decode(v); err == nil {
		eachText(parsed, path, func(path, s string) {
			if text, is := expression(s); is {
				f(path, text)
			}
		})
	}
}

// eachText calls f with each string in a value, in the order of names.
func eachText(v any, path string, f func(path, text string)) {
	switch v := v.(type) {
	case string:
		f(path, v)
	case []any:
		for i, it := range v {
			eachText(it, configdoc.Item(path, i), f)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			eachText(v[name], configdoc.Child(path, name), f)
		}
	}
}
