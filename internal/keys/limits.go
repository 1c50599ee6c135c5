package keys

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits enforces the rate limits of callers.
type Limits struct {
	Rate int // default in requests per second; 0 means unlimited

	mu sync.Mutex
	by map[string]*rate.Limiter
}

// Take counts a request of a caller, or returns how long it must wait. own is the caller's own limit, 0 for the default. The
// number of limiters is bounded.
func (l *Limits) Take(caller string, own int) time.Duration {
	per := l.Rate
	if own > 0 {
		per = own
	}
	if per <= 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.by[caller]
	if one == nil || one.Limit() != rate.Limit(per) {
		if l.by == nil || len(l.by) > maxLimiters {
			l.by = make(map[string]*rate.Limiter)
		}
		one = rate.NewLimiter(rate.Limit(per), 2*per)
		l.by[caller] = one
	}
	r := one.Reserve()
	wait := r.Delay()
	if wait > 0 {
		r.Cancel()
	}
	return wait
}

const maxLimiters = 10_000
