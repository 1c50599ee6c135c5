package keys

import (
	"maps"
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
		l.makeRoom()
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

// makeRoom deletes the limiters of callers that have made no requests lately, which are as good as new. Only if all callers are active, it
// deletes all. REQUIRES: mu
func (l *Limits) makeRoom() {
	if len(l.by) > maxLimiters {
		maps.DeleteFunc(l.by, func(_ string, one *rate.Limiter) bool { return one.Tokens() >= float64(one.Burst()) })
	}
	if l.by == nil || len(l.by) > maxLimiters {
		l.by = make(map[string]*rate.Limiter)
	}
}

const maxLimiters = 10_000
