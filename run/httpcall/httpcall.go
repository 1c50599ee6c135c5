// Package httpcall makes the calls of runs over HTTP.
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
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/run"
)

// With calls through a client. What may be called is the client's to say: it should have a
// transport that reaches nothing it must not, where others write the definitions.
func With(client *http.Client) run.Caller { return caller{client} }

type caller struct{ client *http.Client }

// mostAnswer is how much of an answer is read.
const mostAnswer = 1 << 20

// Call makes a call.
func (c caller) Call(ctx context.Context, o run.Outgoing) (run.Answer, error) {
	r, err := request(ctx, o)
	if err != nil {
		return run.Answer{}, holdfast.NonRetryable(err)
	}
	answer, err := c.client.Do(r)
	if err != nil {
		if fault.IsFinal(err) { // it was refused before anything was sent
			return run.Answer{}, holdfast.NonRetryable(err)
		}
		return run.Answer{}, fmt.Errorf("%s %s was not answered: %w", r.Method, r.URL.Redacted(), err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer+1))
	if err == nil && len(body) > mostAnswer {
		err = errors.New("it is longer than a mebibyte")
	}
	if err != nil {
		return run.Answer{}, fmt.Errorf("the answer of %s %s was not heard to its end: %w", r.Method, r.URL.Redacted(), err)
	}
	return run.Answer{Status: answer.StatusCode, Headers: some(answer.Header), Body: bodyOrText(body)}, nil
}

func request(ctx context.Context, o run.Outgoing) (*http.Request, error) {
	// A transport repeats by itself, on a connection that broke, what has this header and a
	// body that it can read again, or none. Whether to repeat is for the step to say: so the
	// body is one that can be read once.
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

// safe says of a method that to repeat it does no harm.
func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// bodyOrText is an answer's body as JSON: what is none is a text.
func bodyOrText(body []byte) json.RawMessage {
	if len(body) == 0 {
		return nil
	}
	if json.Valid(body) {
		return body
	}
	text, _ := json.Marshal(strings.ReplaceAll(strings.ToValidUTF8(string(body), "\uFFFD"), "\x00", "\uFFFD")) // of a string, it does not fail
	return text
}

// some are the headers that a run may go by.
func some(h http.Header) map[string]string {
	out := make(map[string]string)
	for _, name := range []string{"Content-Type", "Location", "Etag", "Retry-After"} {
		if v := h.Get(name); v != "" {
			out[strings.ToLower(name)] = v
		}
	}
	return out
}
