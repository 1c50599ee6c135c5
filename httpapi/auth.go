package httpapi

import (
	"context"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/store"
)

// workspaceHeader picks the workspace where no keys are asked for.
const workspaceHeader = "X-Holdfast-Workspace"

// authenticate finds out who asks, and in which workspace.
func (c *call) authenticate() error {
	key, err := c.api.whoIs(c.r)
	if err != nil {
		return err
	}
	if space := c.r.Header.Get(workspaceHeader); space != "" && space != key.Workspace {
		return fault.New(fault.Forbidden, "the API key is not one of the workspace that %s names", workspaceHeader)
	}
	c.key = key
	c.r = c.r.WithContext(holdfast.InWorkspace(c.r.Context(), key.Workspace))
	return nil
}

// whoIs returns the key of a request. Where none are asked for, everyone is an admin
// who speaks for everyone.
func (a *API) whoIs(r *http.Request) (keys.Key, error) {
	if a.open {
		space := r.Header.Get(workspaceHeader)
		if space == "" {
			space = "default"
		}
		return keys.Key{Workspace: space, Role: keys.Admin, Requesters: []string{"*"}}, nil
	}
	return a.ring.Verify(r.Context(), presented(r))
}

// still refuses a call that waits or goes on, where the key that it began with is good no more.
// A database that does not answer says nothing of the key.
func (c *call) still() error {
	if _, err := c.api.whoIs(c.r); fault.CodeOf(err) == fault.Auth {
		return err
	}
	return nil
}

// presented is the key that a request shows. One that shows several shows none: it
// is not clear who asks.
func presented(r *http.Request) string {
	bearer, other := r.Header.Values("Authorization"), r.Header.Values("X-Api-Key")
	if len(bearer)+len(other) != 1 {
		return ""
	}
	if len(other) == 1 {
		return other[0]
	}
	scheme, key, ok := strings.Cut(bearer[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// limits are how fast each key may ask.
type limits struct {
	mu   sync.Mutex
	rate int
	by   map[string]*rate.Limiter
}

// limit refuses a request of a key that asks too fast.
func (c *call) limit() error {
	wait := c.api.limits.take(c.key)
	if wait <= 0 {
		return nil
	}
	seconds := int(math.Ceil(wait.Seconds()))
	return fault.New(fault.RateLimited, "this key asks too fast: try again in %d s", seconds).With("retryAfter", seconds)
}

// take takes a turn of a key, or returns how long there is none. There are as many
// limiters as keys that ask.
func (l *limits) take(k keys.Key) time.Duration {
	per := l.rate
	if k.Rate > 0 {
		per = k.Rate
	}
	if per <= 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.by[k.ID]
	if one == nil || one.Limit() != rate.Limit(per) {
		if l.by == nil || len(l.by) > mostLimiters {
			l.by = make(map[string]*rate.Limiter)
		}
		one = rate.NewLimiter(rate.Limit(per), 2*per)
		l.by[k.ID] = one
	}
	r := one.Reserve()
	wait := r.Delay()
	if wait > 0 {
		r.Cancel()
	}
	return wait
}

const mostLimiters = 10_000

// inTx returns a context whose call runs in a transaction.
func inTransaction(ctx context.Context, tx *store.Tx) context.Context {
	return context.WithValue(ctx, txKey{}, tx)
}
