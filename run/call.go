package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Caller calls URLs. Package run/httpcall makes one of an HTTP client.
type Caller interface {
	// Call makes a call, under a key that is the same for every attempt. An error says that
	// no answer was heard; one that is [holdfast.NonRetryable], that nothing was sent.
	Call(ctx context.Context, c Outgoing) (Answer, error)
}

// Outgoing is a call to be made.
type Outgoing struct {
	Method, URL string
	Headers     map[string]string
	Body        json.RawMessage
	Key         string // for the header Idempotency-Key
}

// Answer is what a call brought: the output of its step.
type Answer struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is the answer's: what is no JSON is a text.
	Body json.RawMessage `json:"body,omitempty"`
}

// Calls has an engine do the steps that call a URL. Hand it to [holdfast.Open], beside
// [Serve].
func Calls(c Caller) holdfast.Part { return calling(c, "run.Calls", (*maintenance).replace) }

// calling is a part that makes the handler of calls known.
func calling(c Caller, where string, known func(k *maintenance, name string, h *handler)) holdfast.Part {
	return part(func(e *holdfast.Engine) error {
		if c == nil {
			return fault.New(fault.Validation, "%s needs a Caller, got nil", where)
		}
		known(maintenanceOf(engine.Of(e)), runengine.CallHandler, &handler{body: callBody{c}.call})
		Maintain(e)
		return nil
	})
}

type callBody struct{ caller Caller }

func (p callBody) call(ctx context.Context, l *runengine.ClaimedStep) (runengine.Done, error) {
	var c runengine.Call
	if err := json.Unmarshal(l.Step.Input, &c); err != nil {
		return runengine.Done{}, holdfast.NonRetryable(err)
	}
	a, err := p.caller.Call(ctx, Outgoing{Method: strings.ToUpper(c.Method), URL: c.URL, Headers: c.Headers, Body: c.Body, Key: l.Operation()})
	switch {
	case err != nil && fault.IsFinal(err):
		return runengine.Done{}, err
	case err != nil:
		return runengine.Done{}, runengine.MayHaveActed(err)
	}
	return heard(c, a)
}

// The statuses of answers that say that nothing was done, and that it may be tried again.
var later = []int{408, 425, 429, 503}

// heard judges an answer. What the other side refuses, it has not done; what it failed at,
// it may have.
func heard(c runengine.Call, a Answer) (runengine.Done, error) {
	said := fmt.Errorf("%s %s answered %d: %s", c.Method, c.URL, a.Status, short(a.Body))
	switch {
	case a.Status < 300:
		if len(a.Body) > 0 && strictjson.Check(a.Body) != nil {
			return runengine.Done{}, runengine.MayHaveActed(fmt.Errorf("%s %s answered what cannot be kept", c.Method, c.URL))
		}
		out, err := json.Marshal(a)
		return runengine.Done{Output: out}, err
	case slices.Contains(later, a.Status):
		return runengine.Done{}, said
	case a.Status >= 500:
		return runengine.Done{}, runengine.MayHaveActed(said)
	}
	return runengine.Done{}, holdfast.NonRetryable(said)
}

func short(body []byte) string {
	const most = 500
	if len(body) > most {
		return strings.ToValidUTF8(string(body[:most]), "") + "…"
	}
	return string(body)
}
