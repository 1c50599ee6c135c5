// Package httpcall makes the HTTP calls of runs ([run.Call]).
//
//	hf, err := holdfast.Open(ctx, db, holdfast.Config{}, definition, run.Calls(httpcall.With(http.DefaultClient)))
package httpcall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/sameorigin"
	"github.com/holdfast-go/holdfast/run"
)

// With returns a [run.Caller] that calls through client. The client decides which addresses may be called. If others
// write the definitions, use a client whose transport reaches only permitted addresses; an error of the transport that is
// [holdfast.NotDone] means that nothing was sent. A response body of more than 1
// MiB is an error. With a nil client, [holdfast.Open] returns [holdfast.ErrValidation].
func With(client *http.Client) run.Caller {
	if client == nil {
		return nil // run.Calls refuses it
	}
	return caller{client}
}

type caller struct{ client *http.Client }

// mostAnswer is the maximum size of a response body.
const mostAnswer = 1 << 20

// Call makes one call. Errors from before anything was sent are [holdfast.NotDone].
func (c caller) Call(ctx context.Context, o run.CallRequest) (run.CallResponse, error) {
	r, err := request(ctx, o)
	if err != nil {
		return run.CallResponse{}, holdfast.NotDone(holdfast.NonRetryable(err))
	}
	answer, err := sameorigin.Client(c.client, o.SecretHeaders).Do(r)
	if err != nil {
		return run.CallResponse{}, fmt.Errorf("%s %s got no response: %w", r.Method, r.URL.Redacted(), err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer+1))
	if err == nil && len(body) > mostAnswer {
		err = errors.New("it exceeds 1 MiB")
	}
	if err != nil {
		return run.CallResponse{}, fmt.Errorf("the response to %s %s could not be read: %w", r.Method, r.URL.Redacted(), err)
	}
	return run.CallResponse{Status: answer.StatusCode, Headers: some(answer.Header), Body: bodyOrText(body)}, nil
}

func request(ctx context.Context, o run.CallRequest) (*http.Request, error) {
	// If a connection breaks, a transport resends a request by itself when it has the header
	// Idempotency-Key and a body that can be read again, or none. Only the step may decide to
	// retry, so the body can be read only once.
	body := struct{ io.Reader }{bytes.NewReader(o.Body)}
	r, err := http.NewRequestWithContext(ctx, o.Method, o.URL, body)
	if err != nil {
		return nil, err
	}
	if r.ContentLength = int64(len(o.Body)); r.ContentLength == 0 && safe(o.Method) {
		r.Body = http.NoBody
	}
	if len(o.Body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Idempotency-Key", o.Key)
	for name, value := range o.Headers {
		r.Header.Set(name, value)
	}
	return r, nil
}

// safe reports whether a method can be repeated without harm.
func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// bodyOrText returns a response body as JSON. A body that is not JSON becomes a JSON string.
func bodyOrText(body []byte) json.RawMessage {
	if len(body) == 0 {
		return nil
	}
	if json.Valid(body) {
		return body
	}
	text, _ := json.Marshal(strings.ReplaceAll(strings.ToValidUTF8(string(body), "\uFFFD"), "\x00", "\uFFFD")) // never fails for a string
	return text
}

// some returns the response headers that a run may use.
func some(h http.Header) map[string]string {
	out := make(map[string]string)
	for _, name := range []string{"Content-Type", "Location", "Etag", "Retry-After"} {
		if v := h.Get(name); v != "" {
			out[strings.ToLower(name)] = v
		}
	}
	return out
}
