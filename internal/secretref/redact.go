package secretref

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Redactor removes the values of secrets from what a receiver returns, before it is stored. The zero value removes nothing.
type Redactor struct{ values []hidden }

type hidden struct {
	value, instead string
	forms          *regexp.Regexp
}

// Add adds a value, and the name of its secret. If the value is base64, as after Basic, its text is added too.
func (r *Redactor) Add(name, value string) {
	r.add(name, value)
	if text, err := base64.StdEncoding.DecodeString(value); err == nil && len(text) >= MinValue && plain(string(text)) {
		r.add(name, string(text))
	}
	slices.SortStableFunc(r.values, func(a, b hidden) int { return len(b.value) - len(a.value) }) // one may contain another
}

func (r *Redactor) add(name, value string) {
	var forms strings.Builder
	for i := range len(value) {
		forms.WriteString(escaped(value[i]))
	}
	for shift := range 3 { // base64 depends on how many bytes precede
		encoded := base64.RawStdEncoding.EncodeToString([]byte("xx"[:shift] + value))
		whole := encoded[(shift*8+5)/6 : (shift+len(value))*8/6]
		forms.WriteString("|" + strings.NewReplacer("+", "[+-]", "/", "[/_]").Replace(whole))
	}
	r.values = append(r.values, hidden{value, "[" + prefix + name + "]", regexp.MustCompile(forms.String())})
}

var entities = map[byte]string{'"': "quot", '&': "amp", '<': "lt", '>': "gt", '\'': "apos"}

// escaped returns a pattern for a character as it is, and as JSON, also within JSON, URLs and HTML escape it.
func escaped(c byte) string {
	self := regexp.QuoteMeta(string(c))
	if strings.ContainsRune("\"\\/'", rune(c)) {
		self = `\\*` + self
	}
	if name, ok := entities[c]; ok {
		self += "|&" + name + ";"
	}
	if c == ' ' {
		self += `|\+`
	}
	return fmt.Sprintf(`(?:%s|\\+u00(?i:%02[2]x)|%%(?:25)*(?i:%02[2]x)|&#0*%[2]d;|&#[xX]0*(?i:%02[2]x);)`, self, c)
}

// Text returns a text without the values.
func (r *Redactor) Text(s string) string {
	for _, h := range r.values {
		s = h.forms.ReplaceAllLiteralString(s, h.instead)
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
