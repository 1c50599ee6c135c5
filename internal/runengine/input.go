package runengine

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/secretref"
	"github.com/holdfast-go/holdfast/internal/transition"
	"github.com/holdfast-go/holdfast/internal/workflow"
)

const (
	opaque     = "opaque"
	idempotent = "idempotent"
)

// grace is how much longer a lease lasts than its body's timeout, so that a body that was
// stopped can still report it.
const grace = 5 * time.Second

// of returns the handler's options for a step, which may override them.
func (h Handled) of(s *workflow.Step) Handled {
	switch s.Type {
	case workflow.HTTP:
		h.Safety = CallSafety(s.Method)
	case workflow.Transition:
		h.Safety = "idempotent"
	}
	h.Safety, h.Unknown = cmp.Or(s.Safety, h.Safety), cmp.Or(s.OnUnknown, h.Unknown, "hold")
	h.Timeout = cmp.Or(max(s.Timeout, 0), max(h.Timeout, 0), lease.Timeout) + grace
	return h
}

// CallSafety returns the default safety of an HTTP method: repeating a call that only reads, or
// that replaces or deletes something, does no harm.
func CallSafety(method string) string {
	if method == "" || slices.Contains([]string{"GET", "HEAD", "OPTIONS", "PUT", "DELETE"}, method) {
		return "idempotent"
	}
	return "opaque"
}

// input returns the rendered input of a step.
func (c *planner) input(s *workflow.Step) (json.RawMessage, error) {
	switch {
	case s.Type == workflow.HTTP:
		return c.call(s)
	case s.Type == workflow.Transition:
		return c.transition(s)
	case len(s.Input) == 0:
		return c.run.Input, nil
	}
	return workflow.Render(s.Input, c.env())
}

// Call is the input of a step that calls a URL.
type Call struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    json.RawMessage   `json:"body,omitempty"`
	// Secrets is set if the definition's own headers refer to secrets. References elsewhere are not replaced.
	Secrets *CallSecrets `json:"secrets,omitempty"`
}

// CallSecrets limits what the references to secrets of a call do. It has only what the definition says, and nothing of a run's input.
type CallSecrets struct {
	Headers []string `json:"headers"` // the headers whose references are replaced, sorted
	Origin  string   `json:"origin"`  // the only scheme and host that may get them
}

// MayOpen refuses a call with references that its definition does not have, or to a host that the definition does not name. The
// input of a step with another type is not a call that a definition describes.
func (c Call) MayOpen(s workflow.Type) error {
	for name, text := range c.Headers {
		if secretref.In(text) && (s != workflow.HTTP || c.Secrets == nil || !slices.Contains(c.Secrets.Headers, name)) {
			return fault.New(fault.Validation, "nothing was sent: header %s refers to a secret, but the step began before secrets existed, or the reference is not in its definition: start a new run of a definition that has it in a header of an http step", lease.Plain(name))
		}
	}
	if c.Secrets == nil {
		return nil
	}
	if origin, ok := secretref.Origin(c.URL); !ok || origin != c.Secrets.Origin {
		return fault.New(fault.Validation, "nothing was sent: a header has a secret, and the URL is not within %s or has '..' in its path: correct the input", c.Secrets.Origin)
	}
	return nil
}

func (c *planner) call(s *workflow.Step) (json.RawMessage, error) {
	out := Call{Method: cmp.Or(s.Method, "GET")}
	var err error
	if out.URL, err = c.text("url", s.URL); err != nil {
		return nil, err
	}
	for name, v := range s.Headers {
		if out.Headers == nil {
			out.Headers = make(map[string]string)
		}
		if out.Headers[name], err = c.text("header "+name, v); err != nil {
			return nil, err
		}
		if secretref.In(out.Headers[name]) {
			origin, fixed := workflow.FixedOrigin(s.URL)
			if workflow.Computed(v) || !fixed || secretref.Reserved(name) { // the input of a run must not choose a secret, or who gets it
				return nil, fault.New(fault.Validation, "header %s refers to a secret: write the reference itself in the definition, in a header that Holdfast does not set, and begin the URL with a fixed scheme and host", name)
			}
			if out.Secrets == nil {
				out.Secrets = &CallSecrets{Origin: origin}
			}
			out.Secrets.Headers = append(out.Secrets.Headers, name)
		}
	}
	if out.Secrets != nil {
		slices.Sort(out.Secrets.Headers)
	}
	if err := out.MayOpen(s.Type); err != nil {
		return nil, err
	}
	if len(s.Body) > 0 {
		if out.Body, err = workflow.Render(s.Body, c.env()); err != nil {
			return nil, err
		}
	}
	return json.Marshal(out)
}

// text renders a value that must be a string; a number is converted.
func (c *planner) text(what string, v workflow.Value) (string, error) {
	out, err := workflow.Render(v, c.env())
	if err != nil {
		return "", err
	}
	var s string
	if json.Unmarshal(out, &s) == nil && s != "" {
		return s, nil
	}
	var n json.Number
	if json.Unmarshal(out, &n) == nil && n != "" {
		return n.String(), nil
	}
	return "", fault.New(fault.Validation, "%s must be a non-empty string or a number, got %s", what, lease.Plain(string(out)))
}

func (c *planner) transition(s *workflow.Step) (json.RawMessage, error) {
	entity, err := c.text("entity", s.Entity)
	if err != nil {
		return nil, err
	}
	out := transition.Request{Lifecycle: s.Lifecycle, Entity: entity, StepKey: s.StepKey, Requester: s.Requester}
	if len(s.Input) > 0 {
		if out.Input, err = workflow.Render(s.Input, c.env()); err != nil {
			return nil, err
		}
	}
	return json.Marshal(out)
}
