package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

// Option is an option of a call.
type Option struct{ set func(*request) }

// Key sets the idempotency key of a call: the server carries out a call only once per key, no matter how many times
// the call is sent, and returns the same response for a day. With a key, a call that changes something is retried if
// its outcome is unknown. Use a new key for each call: a different call with the same key returns an error with the
// code [fault.KeyMismatch]. Calls that only read refuse this option.
func Key(key string) Option {
	return Option{func(r *request) {
		if r.method == http.MethodGet {
			r.refused = fault.New(fault.Validation, "Key is an option of calls that change something: omit it for a read")
			return
		}
		r.header.Set("Idempotency-Key", key)
		r.keyed = key != ""
	}}
}

// ownKey adds a generated key, unless the options set one.
func ownKey(o []Option) []Option { return append([]Option{Key(rand.Text())}, o...) }

// Wait sets how long [Client.FireStep] waits for a worker. The default is 30 seconds; the server shortens more than 50
// seconds to 50.
func Wait(d time.Duration) Option {
	return Option{func(r *request) { r.query.Set("waitMs", strconv.FormatInt(d.Milliseconds(), 10)) }}
}

// DryRun makes [Client.PutLifecycle] and [Client.PutDefinition] validate a document without storing it. Other calls refuse
// this option.
func DryRun() Option {
	return Option{func(r *request) {
		if !(r.method == http.MethodPut && r.path[0] == "lifecycles") && !(r.method == http.MethodPost && r.path[0] == "workflow-definitions") {
			r.refused = fault.New(fault.Validation, "DryRun is an option of PutLifecycle and PutDefinition: other calls would ignore it")
		}
		r.query.Set("dryRun", "true")
	}}
}

// At makes [Client.GetEntity] and [Client.GetScope] return the object as it was at a version.
func At(version int64) Option {
	return Option{func(r *request) { r.query.Set("at", strconv.FormatInt(version, 10)) }}
}

// Raw stores the undecoded response body in into.
func Raw(into *json.RawMessage) Option { return Option{func(r *request) { r.raw = into }} }

// request is a call to be sent.
type request struct {
	method string
	path   []string
	query  url.Values
	header http.Header
	body   any // nil for none
	keyed  bool
	raw    *json.RawMessage
	// refused is the error of an option that the call does not have.
	refused error
}

func newRequest(method string, body any, path ...string) *request {
	return &request{method: method, path: path, query: make(url.Values), header: make(http.Header), body: body}
}

func (r *request) with(all []Option) *request {
	for _, o := range all {
		o.set(r)
	}
	return r
}

// retryable reports whether the request may be sent more than once.
func (r *request) retryable() bool { return r.method == http.MethodGet || r.keyed }

// url returns the URL of the request. It escapes each part of the path completely, so that an id
// that contains a slash, or is "..", remains one part.
func (r *request) url(base string) (string, error) {
	if r.refused != nil {
		return "", r.refused
	}
	var b strings.Builder
	b.WriteString(base)
	for _, p := range r.path {
		if p == "" {
			return "", fault.New(fault.Validation, "names and ids must not be empty, got the path %q", strings.Join(r.path, "/"))
		}
		if p = url.PathEscape(p); p == "." || p == ".." {
			p = strings.ReplaceAll(p, ".", "%2E")
		}
		b.WriteString("/" + p)
	}
	if len(r.query) > 0 {
		b.WriteString("?" + r.query.Encode())
	}
	return b.String(), nil
}

func (r *request) text() ([]byte, error) {
	if r.body == nil {
		return nil, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r.body); err != nil {
		return nil, fault.New(fault.Validation, "the request body cannot be encoded as JSON").Wrap(err)
	}
	return b.Bytes(), nil
}

// do sends a request, with retries, and decodes the response.
func do[T any](ctx context.Context, c *Client, r *request, o []Option) (T, error) {
	var out T
	body, err := c.answer(ctx, r.with(o))
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(body, &out); err != nil {
		return out, notHoldfast(r.lost(), "an unexpected response", err)
	}
	return out, nil
}

// answer sends a request, with retries if it may be repeated, and returns the body of the response.
func (c *Client) answer(ctx context.Context, r *request) ([]byte, error) {
	at, err := r.url(c.base)
	if err != nil {
		return nil, err
	}
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	attempts := 1
	if r.retryable() {
		attempts = c.o.MaxAttempts
	}
	b := c.backoff()
	unknown := false
	for {
		body, failed := c.once(ctx, r, at, text)
		attempts--
		if failed == nil {
			if r.raw != nil {
				*r.raw = body
			}
			return body, nil
		}
		unknown = unknown || failed.fault != nil && failed.fault.Code == fault.OutcomeUnknown
		if attempts == 0 || !failed.temporary || !b.wait(ctx, failed.after) {
			if unknown {
				failed = failed.unknown()
			}
			return nil, failed.publicError(ctx)
		}
	}
}

// once sends a request once.
func (c *Client) once(ctx context.Context, r *request, at string, text []byte) ([]byte, *failure) {
	resp, failed := c.send(ctx, r, at, text)
	if failed != nil {
		return nil, failed
	}
	defer resp.Body.Close()
	body, err := read(resp.Body)
	if err != nil {
		return nil, brokenOff(r.lost(), err)
	}
	if resp.StatusCode == http.StatusNotModified && r.header.Get("If-None-Match") != "" {
		return nil, &failure{unmodified: true}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, refusal(r.lost(), resp, body)
	}
	if len(body) == 0 && resp.StatusCode != http.StatusNoContent || len(body) > 0 && !isJSON(resp.Header, "application/json") {
		return nil, foreignResponse(r.lost(), resp, body)
	}
	return body, nil
}

// send sends a request once, and returns the response with its body unread.
func (c *Client) send(ctx context.Context, r *request, at string, text []byte) (*http.Response, *failure) {
	var in io.Reader
	if text != nil {
		in = bytes.NewReader(text)
	}
	q, err := http.NewRequestWithContext(ctx, r.method, at, in)
	if err != nil {
		return nil, &failure{fault: fault.New(fault.Validation, "the request cannot be built: check the names, ids and headers").Wrap(err)}
	}
	q.Header = r.header.Clone()
	q.Header.Set("User-Agent", c.o.UserAgent)
	if text != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if q.Header.Get("Accept") == "" {
		q.Header.Set("Accept", "application/json, "+wire.ProblemType)
	}
	if c.o.APIKey != "" {
		q.Header.Set("Authorization", "Bearer "+c.o.APIKey)
	}
	if c.o.Workspace != "" {
		q.Header.Set("X-Holdfast-Workspace", c.o.Workspace)
	}
	if err := ctx.Err(); err != nil {
		return nil, unsent(q.URL.Host, err)
	}
	var wants, has atomic.Bool
	resp, err := c.http.Do(q.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { wants.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { has.Store(true) },
	})))
	switch {
	case err == nil:
		return resp, nil
	case wants.Load() && !has.Load(): // the transport never had a connection
		return nil, unsent(q.URL.Host, err)
	}
	return nil, unreached(r.lost(), q.URL.Host, err)
}
