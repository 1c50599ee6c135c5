package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/wire"
)

// maxAnswer is the maximum size of a response, above what a server sends: a claim stops below 8
// MiB, then takes at most 16 more tasks, with three documents of at most 1 MiB each.
const maxAnswer = 64 << 20

// failure is the failure of a request.
type failure struct {
	fault      *fault.Error
	temporary  bool          // a retry may succeed
	after      time.Duration // Retry-After of the server
	unmodified bool          // [ErrNotModified], without a fault
}

// publicError returns the error for the caller. If the caller's context has ended, it wraps that
// error too.
func (f *failure) publicError(ctx context.Context) error {
	if f.unmodified {
		return ErrNotModified
	}
	if ctx.Err() != nil && !errors.Is(f.fault, ctx.Err()) {
		return f.fault.Wrap(errors.Join(ctx.Err(), f.fault.Unwrap()))
	}
	return f.fault
}

// lost returns the code of a failure without a complete response of the server. A request that changes
// something may have taken effect.
func (r *request) lost() fault.Code {
	if r.method == http.MethodGet {
		return fault.Unavailable
	}
	return fault.OutcomeUnknown
}

// unsent returns the failure of a request of which nothing was sent.
func unsent(host string, err error) *failure {
	return &failure{fault: fault.New(fault.Unavailable, "the server at %s cannot be reached", host).Wrap(err), temporary: true}
}

// unreached returns the failure of a request without a response.
func unreached(lost fault.Code, host string, err error) *failure {
	return &failure{fault: fault.New(lost, "the server at %s cannot be reached, or it closed the connection before it responded", host).Wrap(err), temporary: true}
}

// brokenOff returns the failure of an incomplete response.
func brokenOff(lost fault.Code, err error) *failure {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		if lost == fault.OutcomeUnknown {
			f = fault.New(lost, "%s", f.Message)
		}
		return &failure{fault: f}
	}
	return &failure{fault: fault.New(lost, "the connection was lost before the response was complete").Wrap(err), temporary: true}
}

func notHoldfast(lost fault.Code, what string, cause error) *fault.Error {
	return fault.New(lost, "the server responded with %s: check that the URL belongs to a Holdfast server", what).Wrap(cause)
}

// unknown returns the failure of a request if an earlier attempt has an unknown outcome. A failure that is temporary says
// nothing about the earlier attempt. Its own code is not wrapped: it says that nothing was written.
func (f *failure) unknown() *failure {
	if !f.temporary || f.fault.Code == fault.OutcomeUnknown {
		return f
	}
	return &failure{fault: fault.New(fault.OutcomeUnknown, "an earlier attempt may have taken effect: %s", f.fault.Message).Wrap(f.fault.Unwrap())}
}

// foreignResponse returns the failure of a response that no Holdfast server sends, such as a proxy's page.
func foreignResponse(lost fault.Code, resp *http.Response, body []byte) *failure {
	cause := fmt.Errorf("%s, %q: %.200q", resp.Status, resp.Header.Get("Content-Type"), body)
	return &failure{fault: notHoldfast(lost, resp.Status+", which is not an API response", cause), temporary: temporaryStatuses[resp.StatusCode], after: retryAfter(resp.Header)}
}

// temporaryStatuses are the statuses of a proxy that cannot reach the server or limits the rate.
var temporaryStatuses = map[int]bool{
	http.StatusTooManyRequests: true, http.StatusBadGateway: true, http.StatusServiceUnavailable: true, http.StatusGatewayTimeout: true,
}

// temporaryCodes are the codes of refusals that a retry may not get again.
var temporaryCodes = []fault.Code{fault.RateLimited, fault.KeyInFlight, fault.Unavailable, fault.MutationTimeout, fault.OutcomeUnknown}

// refusal decodes the problem document of a response.
func refusal(lost fault.Code, resp *http.Response, body []byte) *failure {
	var p wire.Problem
	if !isJSON(resp.Header, wire.ProblemType) || json.Unmarshal(body, &p) != nil || p.Code == "" {
		return foreignResponse(lost, resp, body)
	}
	after := retryAfter(resp.Header)
	// A quota that only time frees says when to try again.
	return &failure{fault: p.Fault(), temporary: slices.Contains(temporaryCodes, p.Code) || p.Code == fault.QuotaExceeded && after > 0, after: after}
}

func isJSON(h http.Header, want string) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == want
}

// read reads a body, up to maxAnswer.
func read(from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fault.New(fault.PayloadTooLarge, "the response exceeds %d MiB: request a smaller page", maxAnswer>>20)
	}
	return body, err
}

// retryAfter returns the Retry-After of a response. A date is relative to the response's own Date,
// so the local clock does not matter.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return time.Duration(n) * time.Second
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return max(0, until.Sub(now))
}

// backoff computes the delays between attempts: each up to twice as long as the previous one, with
// jitter.
type backoff struct{ next, patience time.Duration }

func (c *Client) backoff() *backoff { return &backoff{c.pause, c.patience} }

// wait waits for the delay plus the time that the server asked for. It returns false if the context
// ends, or if the server asks for too long.
func (b *backoff) wait(ctx context.Context, atLeast time.Duration) bool {
	if atLeast > b.patience {
		return false
	}
	d := b.next/2 + rand.N(b.next/2+1) + atLeast
	b.next = min(2*b.next, longestPause)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
