package clock

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Alarm bounds many short calls by one timer, which is set only when the earliest of them
// comes nearer: hardly ever, where all have the same time and most end long before. A timer
// of its own for each, as [context.WithTimeout] has, wakes a thread of the runtime each time
// it is set, which costs a lone caller of a database a fifth of its rate. The zero value is
// ready for use.
type Alarm struct {
	mu    sync.Mutex
	calls calls
	timer *time.Timer
	set   time.Time // when the timer goes off; zero if it is not set
}

// call is one that is to end by a time.
type call struct {
	at     time.Time
	cancel func()
	place  int // in the heap; -1 when it is out
}

// Within is [context.WithTimeoutCause]; with nil, the cause is [context.DeadlineExceeded].
// One thing differs: a context that is made from the one it returns has the error
// [context.Canceled] when the time is over. Its cause is the same.
func (a *Alarm) Within(parent context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	ctx, cancel := context.WithCancelCause(parent)
	c := &call{at: time.Now().Add(d), cancel: func() { cancel(cause) }}
	b := &bounded{Context: ctx, at: c.at, cause: cause}
	if by, ok := parent.Deadline(); ok && by.Before(b.at) {
		b.at = by
	}
	a.add(c)
	return b, func() {
		a.remove(c)
		cancel(nil)
	}
}

func (a *Alarm) add(c *call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	heap.Push(&a.calls, c)
	if a.set.IsZero() || c.at.Before(a.set) {
		a.arm(c.at)
	}
}

func (a *Alarm) remove(c *call) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.place >= 0 {
		heap.Remove(&a.calls, c.place)
	}
}

// arm sets the timer. REQUIRES: mu
func (a *Alarm) arm(at time.Time) {
	a.set = at
	if a.timer == nil {
		a.timer = time.AfterFunc(time.Until(at), a.ring)
		return
	}
	a.timer.Reset(time.Until(at))
}

// ring ends the calls whose time is over, and sets the timer for the next.
func (a *Alarm) ring() {
	var late []*call
	a.mu.Lock()
	a.set = time.Time{}
	for now := time.Now(); len(a.calls) > 0; {
		if first := a.calls[0]; first.at.After(now) {
			a.arm(first.at)
			break
		}
		late = append(late, heap.Pop(&a.calls).(*call))
	}
	a.mu.Unlock()
	for _, c := range late {
		c.cancel()
	}
}

// bounded is a context with an alarm.
type bounded struct {
	context.Context
	at    time.Time
	cause error
}

// Deadline is when it ends at the latest.
func (b *bounded) Deadline() (time.Time, bool) { return b.at, true }

// Err says of a time that is over that it is.
func (b *bounded) Err() error {
	err := b.Context.Err()
	if err != nil && context.Cause(b.Context) == b.cause { //nolint:errorlint // it is this very one
		return context.DeadlineExceeded
	}
	return err
}

// calls is a heap by time.
type calls []*call

func (c calls) Len() int           { return len(c) }
func (c calls) Less(i, j int) bool { return c[i].at.Before(c[j].at) }

func (c calls) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].place, c[j].place = i, j
}

// Push adds one at the end.
func (c *calls) Push(x any) {
	x.(*call).place = len(*c)
	*c = append(*c, x.(*call))
}

// Pop takes the last.
func (c *calls) Pop() any {
	last := len(*c) - 1
	x := (*c)[last]
	(*c)[last], x.place = nil, -1
	*c = (*c)[:last]
	return x
}
