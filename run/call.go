package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/secretref"
	"github.com/holdfast-go/holdfast/internal/secrets"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Caller makes the HTTP calls of [Call] steps. Package run/httpcall makes a Caller from an HTTP
// client.
type Caller interface {
	// Call makes one call. The key is the same for every attempt. If Call returns an error, no response was received,
	// and it is unknown whether the call took effect. If the error is [holdfast.NotDone], nothing was sent.
	// [holdfast.NonRetryable] ends the attempts, and says nothing about the effect.
	Call(ctx context.Context, c CallRequest) (CallResponse, error)
}

// CallRequest is the request of a [Call] step.
type CallRequest struct {
	Method, URL string
	Headers     map[string]string
	Body        json.RawMessage
	Key         string // value of the header Idempotency-Key
	// SecretHeaders are the names of the headers whose values have the value of a secret. They must not be sent to another host,
	// to which the URL redirects, and not be logged.
	SecretHeaders []string
}

// CallResponse is the response to a call, and the output of its step.
type CallResponse struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is the body of the response. A body that is not JSON is stored as a JSON string.
	Body json.RawMessage `json:"body,omitempty"`
}

// Calls returns a part that makes c perform the HTTP requests of the engine's [Call] steps. Pass it
// to [holdfast.Open], next to the definitions. If c is nil, Open returns [holdfast.ErrValidation].
func Calls(c Caller) holdfast.Part {
	return part(func(e *holdfast.Engine) error {
		if c == nil {
			return fault.New(fault.Validation, "run.Calls needs a caller, got nil: pass one, such as httpcall.With of an HTTP client")
		}
		if err := engine.Of(e).Once("run.Calls"); err != nil {
			return err
		}
		serviceOf(engine.Of(e)).start()
		return serviceOf(engine.Of(e)).add(runengine.CallHandler, &handler{body: callBody{c, engine.Of(e)}.call})
	})
}

type callBody struct {
	caller Caller
	engine *engine.Engine
}

func (p callBody) call(ctx context.Context, l *runengine.ClaimedStep) (runengine.Done, error) {
	var c runengine.Call
	if err := json.Unmarshal(l.Step.Input, &c); err != nil {
		return runengine.Done{}, holdfast.NonRetryable(err)
	}
	if err := c.MayOpen(l.Step.Type); err != nil {
		return runengine.Done{}, holdfast.NonRetryable(err)
	}
	opened, err := secrets.Open(ctx, p.engine, secrets.BoxOf(p.engine), c.Headers)
	if err != nil { // nothing was sent
		return runengine.Done{}, err
	}
	request := CallRequest{Method: strings.ToUpper(c.Method), URL: c.URL, Headers: opened.Headers, Body: c.Body, Key: l.Operation()}
	if c.Secrets != nil {
		request.SecretHeaders = c.Secrets.Headers
	}
	a, err := p.caller.Call(ctx, request)
	a.Body = opened.Redact.Body(a.Body)
	for name, text := range a.Headers {
		a.Headers[name] = opened.Redact.Text(text)
	}
	err = redacted(&opened.Redact, err)
	switch {
	case err != nil && effects.DidNotHappen(err):
		return runengine.Done{}, err
	case err != nil:
		return runengine.Done{}, runengine.MayHaveActed(err)
	}
	return heard(c, a)
}

// redacted returns the error of a call without the values of secrets.
func redacted(r *secretref.Redactor, err error) error {
	clean, changed := r.Error(err)
	if changed && fault.IsNonRetryable(err) {
		clean = fault.NonRetryable(clean)
	}
	if changed && effects.DidNotHappen(err) {
		clean = effects.NotHappened(clean)
	}
	return clean
}

// later lists the statuses that mean that the call had no effect and may be retried.
var later = []int{408, 425, 429, 503}

// heard maps a response to the outcome of its step. A call that was refused did not act; a call
// that failed (5xx) may have acted.
func heard(c runengine.Call, a CallResponse) (runengine.Done, error) {
	said := fmt.Errorf("%s %s returned status %d: %s", c.Method, c.URL, a.Status, short(a.Body))
	switch {
	case a.Status < 300:
		if len(a.Body) > 0 && strictjson.Check(a.Body) != nil {
			return runengine.Done{}, runengine.MayHaveActed(fmt.Errorf("%s %s returned a body that is not valid JSON or is too large to store", c.Method, c.URL))
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
