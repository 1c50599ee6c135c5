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

// MaxDuration is the longest time that a definition may name: a hundred years.
const MaxDuration = 36525 * 24 * time.Hour

// Check reads a definition and judges it. It reports all that can be found in one go; the
// definition is nil if there are violations. For what is known see [Definition.Lint].
func Check(data []byte, k Known) (d *Definition, violations, warnings []Violation) {
	return configdoc.Check(data, Parse, func(d *Definition) (violations, warnings []Violation) { return d.Lint(k) })
}

// document is how the text of a definition is spoken of.
var document = configdoc.Document{
	What:   "definition",
	Needs:  "name, version and steps",
	Depth:  "make its values flatter",
	Levels: strictjson.MaxDepth,
}

// Parse reads a definition: JSON if it begins with a brace, else YAML. What is unknown,
// said twice, of a wrong type or open to more than one reading is refused. What a
// definition means is for [Definition.Lint] to judge: with violations the definition has
// what could be read, for it to say more, or is nil if nothing could.
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

// numbers makes numbers of those that the reader of YAML takes for text, because they have
// an exponent or more than 64 bits: the same text is a number in JSON.
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

// whole is a whole number that is written in one way only.
var whole = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// readVersion reads a text, or a whole number as one.
func readVersion(r *configdoc.Reader, n *configdoc.Node, path string) string {
	if n.Kind == configdoc.Number && whole.MatchString(n.Text) {
		return n.Text
	}
	s, _ := r.Text(n, path)
	return s
}

func readSteps(r *configdoc.Reader, d *Definition, n *configdoc.Node, path string) {
	if !r.Is(n, configdoc.Array, path, "steps is a list of steps") {
		return
	}
	if len(n.Items) > MaxSteps {
		r.Refuse("D7", path, n.At, "a definition has %d steps at the most, and this has %d: make it several", MaxSteps, len(n.Items))
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
		r.Refuse("D7", path, n.At, "there is no type %s: it is one of %s", configdoc.Show(t), typeNames())
		return
	}
	s.Type = Type(t)
}

// filled reads a text that has a default, so that an empty one is no way to ask for it.
func filled(r *configdoc.Reader, n *configdoc.Node, path string) string {
	s, ok := r.Text(n, path)
	if ok && s == "" {
		r.Refuse("D7", path, n.At, "%s is empty: fill it in, or leave it out", configdoc.Last(path))
	}
	return s
}

// readMs reads a duration in milliseconds.
func readMs(r *configdoc.Reader, n *configdoc.Node, path string) time.Duration {
	if !r.Is(n, configdoc.Number, path, configdoc.Last(path)+" is a whole number of milliseconds") {
		return 0
	}
	ms, err := strconv.ParseInt(n.Text, 10, 64)
	switch {
	case !whole.MatchString(n.Text) && !errors.Is(err, strconv.ErrRange) && err != nil:
		r.Refuse(configdoc.RuleType, path, n.At, "%s is a whole number of milliseconds in plain digits, and this is %s", configdoc.Last(path), configdoc.Show(n.Text))
	case err != nil || ms <= 0 || ms > int64(MaxDuration/time.Millisecond):
		r.Refuse("D7", path, n.At, "%s is more than nothing and a hundred years at the most, in milliseconds, and this is %s", configdoc.Last(path), configdoc.Show(n.Text))
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
	before := len(r.Found)
	attempts := r.Integer(n, path)
	if n.Kind == configdoc.Number && len(r.Found) == before && attempts == 0 {
		r.Refuse("D7", path, n.At, "maxAttempts is 1 to %d, the first included: leave it out for the default", MaxAttempts)
	}
	t.MaxAttempts = attempts
}

func readMultiplier(r *configdoc.Reader, t *Retry, n *configdoc.Node, path string) {
	if !r.Is(n, configdoc.Number, path, "multiplier is a number") {
		return
	}
	v, err := strconv.ParseFloat(n.Text, 64)
	switch {
	case err != nil || !json.Valid([]byte(n.Text)) || math.IsInf(v, 0):
		r.Refuse(configdoc.RuleType, path, n.At, "multiplier is a number in plain digits, and this is %s", configdoc.Show(n.Text))
	case v == 0:
		r.Refuse("D7", path, n.At, "multiplier is 1 to 100: leave it out for the default")
	default:
		t.Multiplier = v
	}
}

func readHeaders(r *configdoc.Reader, s *Step, n *configdoc.Node, path string) {
	if !r.Is(n, configdoc.Object, path, "headers are written as names with texts") {
		return
	}
	for _, m := range n.Members {
		if s.Headers == nil {
			s.Headers = make(map[string]Value)
		}
		s.Headers[m.Name] = readValue(r, m.Value, configdoc.Child(path, m.Name))
	}
}

// readValue reads any value, and writes it as canonical JSON.
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

// plain makes Go values of a tree; not ok if a part of it was refused.
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
			r.Refuse(configdoc.RuleType, path, n.At, "%s is no number of JSON: write it in plain digits, or in quotes", configdoc.Show(n.Text))
			return nil, false
		}
		return json.Number(n.Text), true
	case configdoc.Boolean:
		return n.Text == "true", true
	}
	return nil, n.Kind == configdoc.Null
}

func plainObject(r *configdoc.Reader, n *configdoc.Node, path string) (any, bool) {
	all, whole := make(map[string]any, len(n.Members)), true
	for _, m := range n.Members {
		v, ok := plain(r, m.Value, configdoc.Child(path, m.Name))
		all[m.Name], whole = v, whole && ok
	}
	return all, whole
}

func plainArray(r *configdoc.Reader, n *configdoc.Node, path string) (any, bool) {
	all, whole := make([]any, len(n.Items)), true
	for i, it := range n.Items {
		v, ok := plain(r, it, configdoc.Item(path, i))
		all[i], whole = v, whole && ok
	}
	return all, whole
}

// encode writes JSON with the members of objects in one order, and without escapes that
// only HTML needs.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), err
}
