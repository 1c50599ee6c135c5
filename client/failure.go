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

// maxAnswer is the most of an answer that is read: more than a server gives. A claim has less than 8 MiB before
// it takes 16 more tasks, with three documents of 1 MiB each at the most.
const maxAnswer = 64 << 20

// failure is a request that did not succeed.
type failure struct {
	fault   *fault.Error
	passing bool          // another try may have another end
	after   time.Duration // that the server wants to be left alone
}

// publicError is the error that the caller gets. Where the caller's own context has ended,
// it says so too.
func (f *failure) publicError(ctx context.Context) error {
	if ctx.Err() != nil && !errors.Is(f.fault, ctx.Err()) {
		return f.fault.Wrap(errors.Join(ctx.Err(), f.fault.Unwrap()))
	}
	return f.fault
}

// unreached is the failure of a request that nobody answered.
func unreached(err error) *failure {
	return &failure{fault: fault.New(fault.Unavailable, "the server cannot be reached, or went away before it answered").Wrap(err), passing: true}
}

// brokenOff is the failure of an answer that did not come to its end.
func brokenOff(err error) *failure {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return &failure{fault: f}
	}
	return &failure{fault: fault.New(fault.Unavailable, "the answer of the server broke off").Wrap(err), passing: true}
}

func notOurs(what string, cause error) *fault.Error {
	return fault.New(fault.Unavailable, "what answers there gives %s: is it a Holdfast server, and is the URL right?", what).Wrap(cause)
}

// stranger is the failure of an answer that no server of ours gives: a proxy's page.
func stranger(resp *http.Response, body []byte) *failure {
	cause := fmt.Errorf("%s, %q: %.200q", resp.Status, resp.Header.Get("Content-Type"), body)
	return &failure{fault: notOurs(resp.Status+" that is no answer of the API", cause), passing: momentary[resp.StatusCode], after: retryAfter(resp.Header)}
}

// momentary are the answers that something between gives when it cannot reach the
// server, or is asked too fast.
var momentary = map[int]bool{
	http.StatusTooManyRequests: true, http.StatusBadGateway: true, http.StatusServiceUnavailable: true, http.StatusGatewayTimeout: true,
}

// passingCodes are the refusals that another try may not meet.
var passingCodes = []fault.Code{fault.RateLimited, fault.KeyInFlight, fault.Unavailable, fault.MutationTimeout, fault.OutcomeUnknown}

// refusal reads the problem that an answer is.
func refusal(resp *http.Response, body []byte) *failure {
	var p wire.Problem
	if !isJSON(resp.Header, wire.ProblemType) || json.Unmarshal(body, &p) != nil || p.Code == "" {
		return stranger(resp, body)
	}
	return &failure{fault: p.Fault(), passing: slices.Contains(passingCodes, p.Code), after: retryAfter(resp.Header)}
}

func isJSON(h http.Header, want string) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == want
}

// read reads a body, but no more than there may be.
func read(from io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(from, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fault.New(fault.PayloadTooLarge, "the answer is larger than %d MiB: ask for less at a time", maxAnswer>>20)
	}
	return body, err
}

// retryAfter is how long a server wants to be left alone. A date counts from the
// answer's own, so that this machine's clock is not asked.
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

// backoff is the pauses between tries: each up to twice as long as the one before,
// and never the same for two callers.
type backoff struct{ next, patience time.Duration }

func (c *Client) backoff() *backoff { return &backoff{c.pause, c.patience} }

// wait pauses, at least as long as the server asked for. It says no when the context
// ends before, and when the server asks for too long.
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
