package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/configdoc"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// MaxDuration is the longest duration in a definition: a hundred years.
const MaxDuration = 36525 * 24 * time.Hour

// Check parses and lints a definition. It reports everything at once; the definition is nil if there
// are violations. For k see [Definition.Lint].
func Check(data []byte, k Known) (d *Definition, violations, warnings []Violation) {
	return configdoc.Check(data, Parse, func(d *Definition) (violations, warnings []Violation) { return d.Lint(k) })
}

// document describes a definition for messages.
var document = configdoc.Document{
	What:   "definition",
	Needs:  "name, version and steps",
	Depth:  "use fewer levels",
	Levels: strictjson.MaxDepth,
}

// Parse reads a definition: JSON if it begins with a brace, else YAML. It refuses unknown and duplicate
// fields, wrong types and ambiguous values; [Definition.Lint] checks the rest. If there are violations,
// the definition contains the values that could be read, so that Lint can report more; it is nil if
// nothing could be read.
func Parse(data []byte) (*Definition, []Violation) {
	r := configdoc.NewReader(document)
	root := r.Tree(data)
	if root == nil {
		return nil, r.Found
	}
	numbers(root)
	d := &Definition{}
	configdoc.Read(r, definitionFields, d, root, "")
	d.source = r.Finish(data)
	return d, r.Found
}

// numbers converts strings that the YAML reader does not recognize as numbers, because they have an
// exponent or more than 64 bits: the same text is a number in JSON.
func numbers(n *configdoc.Node) {
	if n.Bare && json.Valid([]byte(n.Text)) {
		n.Kind = configdoc.Number
	}
	for _, m := range n.Members {
		numbers(m.Value)
	}
	for _, it := range n.Items {
		numbers(it)
	}
}

var definitionFields = &configdoc.Fields[Definition]{
	What:     "a definition",
	Required: []string{"name", "version", "steps"},
	Read: map[string]func(*configdoc.Reader, *Definition, *configdoc.Node, string){
		"name": func(r *configdoc.Reader, d *Definition, n *configdoc.Node, p string) { d.Name, _ = r.Text(n, p) },
		"version": func(r *configdoc.Reader, d *Definition, n *configdoc.Node, p string) {
			d.Version = readVersion(r, n, p)
		},
		"retentionMs": func(r *configdoc.Reader, d *Definition, n *configdoc.Node, p string) { d.Retention = readMs(r, n, p) },
		"steps":       readSteps,
	},
}

// integer matches a non-negative integer in its only accepted notation.
var integer = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// readVersion reads a string, or an integer as a string.
func readVersion(r *configdoc.Reader, n *configdoc.Node, path string) string {
	if n.Kind == configdoc.Number && integer.MatchString(n.Text) {
		return n.Text
	}
	s, _ := r.Text(n, path)
	return s
}

func readSteps(r *configdoc.Reader, d *Definition, n *configdoc.Node, path string) {
	if !r.Is(n, configdoc.Array, path, "steps must be a list of steps") {
		return
	}
	if len(n.Items) > MaxSteps {
		r.Refuse("D7", path, n.At, "a definition may have at most %d steps, got %d: split it", MaxSteps, len(n.Items))
		return
	}
	d.Steps = make([]Step, len(n.Items))
	for i, it := range n.Items {
		fields := readers[""]
		if t := it.Member("type"); t != nil && t.Kind == configdoc.Text && readers[Type(t.Text)] != nil {
			fields = readers[Type(t.Text)]
		}
		configdoc.Read(r, fields, &d.Steps[i], it, configdoc.Item(path, i))
		if d.Steps[i].Type == HTTP && d.Steps[i].Method == "" {
			d.Steps[i].Method = "GET"
		}
	}
}

func readType(r *configdoc.Reader, s *Step, n *configdoc.Node, path string) {
	t, ok := r.Text(n, path)
	if _, known := shapes[Type(t)]; ok && !known {
		r.Refuse("D7", path, n.At, "type must be one of %[2]s, got %[1]s", configdoc.Show(t), typeNames())
		return
	}
	s.Type = Type(t)
}

// nonEmpty reads a string that has a default. An empty string is refused, because leaving out the field
// selects the default.
func nonEmpty(r *configdoc.Reader, n *configdoc.Node, path string) string {
	s, ok := r.Text(n, path)
	if ok && s == "" {
		r.Refuse("D7", path, n.At, "%s is empty: set it, or leave it out", configdoc.Last(path))
	}
	return s
}

// readMs reads a duration in milliseconds.
func readMs(r *configdoc.Reader, n *configdoc.Node, path string) time.Duration {
	if !r.Is(n, configdoc.Number, path, configdoc.Last(path)+" must be an integer number of milliseconds") {
		return 0
	}
	ms, err := strconv.ParseInt(n.Text, 10, 64)
	switch {
	case !integer.MatchString(n.Text) && !errors.Is(err, strconv.ErrRange) && err != nil:
		r.Refuse(configdoc.RuleType, path, n.At, "%s must be an integer number of milliseconds in decimal digits, got %s", configdoc.Last(path), configdoc.Show(n.Text))
	case err != nil || ms <= 0 || ms > int64(MaxDuration/time.Millisecond):
		r.Refuse("D7", path, n.At, "%s must be positive and at most a hundred years, in milliseconds, got %s", configdoc.Last(path), configdoc.Show(n.Text))
	default:
		return time.Duration(ms) * time.Millisecond
	}
	return 0
}

var retryFields = &configdoc.Fields[Retry]{
	What: "retry",
	Read: map[string]func(*configdoc.Reader, *Retry, *configdoc.Node, string){
		"maxAttempts": readAttempts,
		"backoffMs":   func(r *configdoc.Reader, t *Retry, n *configdoc.Node, p string) { t.Backoff = readMs(r, n, p) },
		"multiplier":  readMultiplier,
		"maxBackoffMs": func(r *configdoc.Reader, t *Retry, n *configdoc.Node, p string) {
			t.MaxBackoff = readMs(r, n, p)
		},
	},
}

func readAttempts(r *configdoc.Reader, t *Retry, n *configdoc.Node, path string) {
	attempts, ok := r.Integer(n, path)
	if ok && attempts == 0 {
		r.Refuse("D7", path, n.At, "maxAttempts must be between 1 and %d, got 0: leave it out for the default", MaxAttempts)
	}
	t.MaxAttempts = attempts
}

func readMultiplier(r *configdoc.Reader, t *Retry, n *configdoc.Node, path string) {
	if !r.Is(n, configdoc.Number, path, "multiplier must be a number") {
		return
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	switch {
	case err != nil || !json.Valid([]byte(n.Text)) || math.IsInf(v, 0):
		r.Refuse(configdoc.RuleType, path, n.At, "multiplier must be a number in decimal digits, got %s", configdoc.Show(n.Text))
	case v == 0:
		r.Refuse("D7", path, n.At, "multiplier must be between 1 and 100, got 0: leave it out for the default")
	default:
		t.Multiplier = v
	}
}

func readHeaders(r *configdoc.Reader, s *Step, n *configdoc.Node, path string) {
	if !r.Is(n, configdoc.Object, path, "headers must be an object of names and strings") {
		return
	}
	for _, m := range n.Members {
		if s.Headers == nil {
			s.Headers = make(map[string]Value)
		}
		s.Headers[m.Name] = readValue(r, m.Value, configdoc.Child(path, m.Name))
	}
}

// readValue reads any value as canonical JSON.
func readValue(r *configdoc.Reader, n *configdoc.Node, path string) Value {
	before := len(r.Found)
	v, ok := plain(r, n, path)
	if !ok || len(r.Found) > before {
		return nil
	}
	doc, err := encode(v)
	if err == nil {
		err = strictjson.Check(doc)
	}
	if err != nil {
		r.Refuse(configdoc.RuleType, path, n.At, "%s: correct it", configdoc.Reason(err))
		return nil
	}
	return doc
}

// plain converts a tree to Go values. ok is false if a part of it was refused.
func plain(r *configdoc.Reader, n *configdoc.Node, path string) (v any, ok bool) {
	switch n.Kind {
	case configdoc.Object:
		return plainObject(r, n, path)
	case configdoc.Array:
		return plainArray(r, n, path)
	case configdoc.Text:
		return n.Text, true
	case configdoc.Number:
		if !json.Valid([]byte(n.Text)) {
			r.Refuse(configdoc.RuleType, path, n.At, "%s is not a valid JSON number: write it in decimal digits, or in quotes", configdoc.Show(n.Text))
			return nil, false
		}
		return json.Number(n.Text), true
	case configdoc.Boolean:
		return n.Text == "true", true
	}
	return nil, n.Kind == configdoc.Null
}

func plainObject(r *configdoc.Reader, n *configdoc.Node, path string) (any, bool) {
	all, complete := make(map[string]any, len(n.Members)), true
	for _, m := range n.Members {
		v, ok := plain(r, m.Value, configdoc.Child(path, m.Name))
		all[m.Name], complete = v, complete && ok
	}
	return all, complete
}

func plainArray(r *configdoc.Reader, n *configdoc.Node, path string) (any, bool) {
	all, complete := make([]any, len(n.Items)), true
	for i, it := range n.Items {
		v, ok := plain(r, it, configdoc.Item(path, i))
		all[i], complete = v, complete && ok
	}
	return all, complete
}

// encode encodes JSON with the members of objects in a fixed order, and without escapes that only HTML
// needs.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}
