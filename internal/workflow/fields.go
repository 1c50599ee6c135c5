package workflow

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// field is a field of a step, with its reader and writer.
type field struct {
	name string
	read func(r *configdoc.Reader, s *Step, n *configdoc.Node, path string)
	// value returns the value to write, or nil if the field is not set.
	value func(s *Step) any
}

// stepFields are all fields of all types, in the order in which they are written.
var stepFields = []field{
	{
		"name",
		func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) { s.Name, _ = r.Text(n, p) },
		func(s *Step) any { return filledOr(s.Name) },
	},
	{"type", readType, func(s *Step) any { return filledOr(string(s.Type)) }},
	text("handler", func(s *Step) *string { return &s.Handler }),
	text("lifecycle", func(s *Step) *string { return &s.Lifecycle }),
	value("entity", func(s *Step) *Value { return &s.Entity }),
	text("stepKey", func(s *Step) *string { return &s.StepKey }),
	text("requester", func(s *Step) *string { return &s.Requester }),
	value("input", func(s *Step) *Value { return &s.Input }),
	text("method", func(s *Step) *string { return &s.Method }),
	value("url", func(s *Step) *Value { return &s.URL }),
	{"headers", readHeaders, writeHeaders},
	value("body", func(s *Step) *Value { return &s.Body }),
	text("safety", func(s *Step) *string { return &s.Safety }),
	text("onUnknown", func(s *Step) *string { return &s.OnUnknown }),
	duration("durationMs", func(s *Step) *time.Duration { return &s.Duration }),
	value("until", func(s *Step) *Value { return &s.Until }),
	text("signal", func(s *Step) *string { return &s.Signal }),
	value("prompt", func(s *Step) *Value { return &s.Prompt }),
	{
		"requesters",
		func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) { s.Requesters = r.Texts(n, p, false) },
		func(s *Step) any { return listOr(s.Requesters) },
	},
	text("if", func(s *Step) *string { return &s.If }),
	text("then", func(s *Step) *string { return &s.Then }),
	text("else", func(s *Step) *string { return &s.Else }),
	{
		"retry",
		func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) {
			configdoc.Read(r, retryFields, &s.Retry, n, p)
		},
		writeRetry,
	},
	duration("timeoutMs", func(s *Step) *time.Duration { return &s.Timeout }),
	text("next", func(s *Step) *string { return &s.Next }),
	text("onFailure", func(s *Step) *string { return &s.OnFailure }),
	text("onTimeout", func(s *Step) *string { return &s.OnTimeout }),
	text("onReject", func(s *Step) *string { return &s.OnReject }),
}

// shape lists the fields of a step type, in addition to the common ones.
type shape struct {
	what     string
	required []string
	optional []string
}

// shapes are the step types. A test compares the JSON schema with them.
var shapes = map[Type]shape{
	Task: {
		what: "a task", required: []string{"handler"},
		optional: []string{"input", "safety", "onUnknown", "retry", "timeoutMs"},
	},
	HTTP: {
		what: "an http step", required: []string{"url"},
		optional: []string{"method", "headers", "body", "safety", "onUnknown", "retry", "timeoutMs"},
	},
	Wait:      {what: "a wait", optional: []string{"durationMs", "until"}},
	Event:     {what: "an event", required: []string{"signal"}, optional: []string{"timeoutMs", "onTimeout"}},
	Approval:  {what: "an approval", required: []string{"prompt"}, optional: []string{"requesters", "timeoutMs", "onTimeout", "onReject"}},
	Condition: {what: "a condition", required: []string{"if"}, optional: []string{"then", "else"}},
	Transition: {
		what: "a transition", required: []string{"lifecycle", "entity", "stepKey", "requester"},
		optional: []string{"input", "retry", "timeoutMs"},
	},
}

// common are the fields of every step.
var common = []string{"name", "type", "next", "onFailure"}

// has reports whether a type has a field.
func (s shape) has(name string) bool {
	return slices.Contains(common, name) || slices.Contains(s.required, name) || slices.Contains(s.optional, name)
}

// Has reports whether the steps of a type have a field.
func (t Type) Has(field string) bool { return shapes[t].has(field) }

// names returns all fields of a type, sorted.
func (s shape) names() []string {
	return slices.Sorted(slices.Values(slices.Concat(common, s.required, s.optional)))
}

// typeNames returns the names of the types, for messages.
func typeNames() string {
	var names []string
	for t := range maps.Keys(shapes) {
		names = append(names, string(t))
	}
	slices.Sort(names)
	return configdoc.List(names)
}

// readers are the accepted fields by type. "" has all of them, for a step whose type is
// unknown.
var readers = makeReaders()

func makeReaders() map[Type]*configdoc.Fields[Step] {
	all := map[Type]*configdoc.Fields[Step]{"": newReader("a step", func(string) bool { return true }, nil)}
	for t, s := range shapes {
		all[t] = newReader(s.what, s.has, s.required)
	}
	return all
}

func newReader(what string, has func(string) bool, required []string) *configdoc.Fields[Step] {
	f := &configdoc.Fields[Step]{
		What: what, Required: append([]string{"name", "type"}, required...),
		Read: make(map[string]func(*configdoc.Reader, *Step, *configdoc.Node, string)),
	}
	for _, one := range stepFields {
		if has(one.name) {
			f.Read[one.name] = one.read
		}
	}
	return f
}

// text returns a field that is a string.
func text(name string, at func(*Step) *string) field {
	return field{
		name:  name,
		read:  func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) { *at(s) = nonEmpty(r, n, p) },
		value: func(s *Step) any { return filledOr(*at(s)) },
	}
}

// value returns a field that may contain expressions.
func value(name string, at func(*Step) *Value) field {
	return field{
		name: name,
		read: func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) { *at(s) = readValue(r, n, p) },
		value: func(s *Step) any {
			if len(*at(s)) == 0 {
				return nil
			}
			return *at(s)
		},
	}
}

// duration returns a field in milliseconds.
func duration(name string, at func(*Step) *time.Duration) field {
	return field{
		name:  name,
		read:  func(r *configdoc.Reader, s *Step, n *configdoc.Node, p string) { *at(s) = readMs(r, n, p) },
		value: func(s *Step) any { return msOr(*at(s)) },
	}
}
