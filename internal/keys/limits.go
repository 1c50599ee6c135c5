package keys

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits are how fast each key may ask.
type Limits struct {
	Rate int // requests a second, for a key that says nothing of its own; 0 is no limit

	mu sync.Mutex
	by map[string]*rate.Limiter
}

// Take takes a turn of a key, or returns how long there is none. There are as many
// limiters as keys that ask.
func (l *Limits) Take(k Key) time.Duration {
	per := l.Rate
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
