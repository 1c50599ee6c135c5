package workflow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// JSON returns the canonical form of a definition: two equal definitions have the same text, whether
// they were written in JSON, YAML or Go. It contains only fields that are set. [Parse] reads it back.
// [Definition.Lint] must have found no violations.
func (d *Definition) JSON() []byte {
	var o object
	o.add("name", d.Name)
	o.add("version", d.Version)
	o.add("retentionMs", msOr(d.Retention))
	steps := make([]json.RawMessage, len(d.Steps))
	for i := range d.Steps {
		steps[i] = d.Steps[i].json()
	}
	o.add("steps", steps)
	return o.end()
}

// json encodes the fields that a step's type has.
func (s *Step) json() []byte {
	var o object
	for _, f := range stepFields {
		switch shape, known := shapes[s.Type]; {
		case known && !shape.has(f.name):
		case f.name == "method" && s.Type == HTTP:
			o.add(f.name, cmp.Or(s.Method, "GET"))
		default:
			o.add(f.name, f.value(s))
		}
	}
	return o.end()
}

// object encodes an object with its members in the order in which they are added.
type object struct{ buf bytes.Buffer }

// add adds a member; nil is omitted.
func (o *object) add(name string, v any) {
	if v == nil {
		return
	}
	if o.buf.Len() > 0 {
		o.buf.WriteByte(',')
	}
	for i, part := range []any{name, v} {
		if i > 0 {
			o.buf.WriteByte(':')
		}
		o.buf.Write(written(part))
	}
}

func (o *object) end() []byte { return slices.Concat([]byte("{"), o.buf.Bytes(), []byte("}")) }

// written encodes a name or a value as JSON, or as null if that fails.
func written(v any) []byte {
	if value, ok := v.(Value); ok {
		return canonical(value)
	}
	doc, err := encode(v)
	if err != nil {
		return []byte("null")
	}
	return doc
}

// canonical returns the canonical form of a value.
func canonical(v Value) []byte {
	dec := json.NewDecoder(bytes.NewReader(v))
	dec.UseNumber()
	var any any
	if err := dec.Decode(&any); err != nil {
		return []byte("null")
	}
	return written(any)
}

func writeHeaders(s *Step) any {
	if len(s.Headers) == 0 {
		return nil
	}
	var o object
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		o.add(name, s.Headers[name])
	}
	return json.RawMessage(o.end())
}

func writeRetry(s *Step) any {
	if s.Retry == (Retry{}) {
		return nil
	}
	var o object
	if s.Retry.MaxAttempts != 0 {
		o.add("maxAttempts", s.Retry.MaxAttempts)
	}
	o.add("backoffMs", msOr(s.Retry.Backoff))
	if s.Retry.Multiplier != 0 {
		o.add("multiplier", s.Retry.Multiplier)
	}
	o.add("maxBackoffMs", msOr(s.Retry.MaxBackoff))
	return json.RawMessage(o.end())
}

// msOr returns a duration in milliseconds, or nil if it is not set.
func msOr(d time.Duration) any {
	if d == 0 {
		return nil
	}
	return d.Milliseconds()
}

// filledOr returns a string, or nil if it is empty.
func filledOr(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// listOr returns a list, or nil if it is empty.
func listOr(all []string) any {
	if len(all) == 0 {
		return nil
	}
	return all
}
