package secretref

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Redactor removes the values of secrets from what a receiver returns, before it is stored. The zero value removes nothing.
type Redactor struct{ values []hidden }

type hidden struct{ value, instead string }

// Add adds a value, and the name of its secret.
func (r *Redactor) Add(name, value string) {
	instead := "[" + prefix + name + "]"
	quoted := strconv.Quote(value) // as in messages of Go, and in JSON within JSON
	encoded, _ := json.Marshal(value)
	all := []string{value, url.QueryEscape(value), quoted[1 : len(quoted)-1], string(encoded[1 : len(encoded)-1])}
	slices.Sort(all)
	for _, form := range slices.Compact(all) {
		r.values = append(r.values, hidden{form, instead})
	}
	slices.SortStableFunc(r.values, func(a, b hidden) int { return len(b.value) - len(a.value) }) // one may contain another
}

// Text returns a text without the values.
func (r *Redactor) Text(s string) string {
	for _, h := range r.values {
		s = strings.ReplaceAll(s, h.value, h.instead)
	}
	return s
}

// Body returns a body without the values. A JSON document stays one: in it, values are found in strings, however these are
// escaped, and where a number is the whole value.
func (r *Redactor) Body(body []byte) []byte {
	if len(r.values) == 0 {
		return body
	}
	if !json.Valid(body) {
		return []byte(r.Text(string(body)))
	}
	var out bytes.Buffer
	for rest := body; len(rest) > 0; {
		n := token(rest)
		out.Write(r.token(rest[:n]))
		rest = rest[n:]
	}
	return out.Bytes()
}

// token returns the length of the string, the number, or the other character that a JSON document begins with.
func token(doc []byte) int {
	if doc[0] != '"' {
		return max(1, len(doc)-len(bytes.TrimLeft(doc, "+-.0123456789eE")))
	}
	for i := 1; ; i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
}

func (r *Redactor) token(t []byte) []byte {
	var s string
	if t[0] == '"' {
		if json.Unmarshal(t, &s) != nil {
			return t
		}
	} else if s = string(t); len(t) < MinValue {
		return t
	}
	clean := r.Text(s)
	if clean == s || t[0] != '"' && !slices.ContainsFunc(r.values, func(h hidden) bool { return h.value == s }) {
		return t
	}
	quoted, _ := json.Marshal(clean) // cannot fail for a string
	return quoted
}

// Error returns an error without the values: one with another text does not wrap the first.
func (r *Redactor) Error(err error) (clean error, changed bool) {
	if err == nil {
		return nil, false
	}
	text := err.Error()
	if clean := r.Text(text); clean != text {
		return errors.New(clean), true
	}
	return err, false
}
