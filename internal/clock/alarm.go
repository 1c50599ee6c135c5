package clock

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Alarm limits the time of many short calls with one timer, which is set only when the earliest deadline moves
// closer. That is rare if all calls have the same limit and most end long before it. A timer per call, as in
// [context.WithTimeout], wakes a runtime thread each time it is set, which costs a single caller of a database
// a fifth of its rate. The zero value is ready to use.
type Alarm struct {
	mu    sync.Mutex
	calls calls
	timer *time.Timer
	set   time.Time // when the timer fires; zero if it is not set
}

// call is a call with a deadline.
type call struct {
	at     time.Time
	cancel func()
	index  int // index in the heap; -1 when removed
}

// Within is like [context.WithTimeoutCause]; a nil cause means [context.DeadlineExceeded]. One thing differs: a
// context derived from the returned one has the error [context.Canceled] after the deadline. Its cause is the
// same.
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
	if c.index >= 0 {
		heap.Remove(&a.calls, c.index)
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

// ring cancels the calls past their deadline, and sets the timer for the next.
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

// bounded is a context with a deadline set by an [Alarm].
type bounded struct {
	context.Context
	at    time.Time
	cause error
}

// Deadline returns the earlier of the alarm's and the parent's deadline.
func (b *bounded) Deadline() (time.Time, bool) { return b.at, true }

// Err returns [context.DeadlineExceeded] if the alarm ended the context.
func (b *bounded) Err() error {
	err := b.Context.Err()
	if err != nil && context.Cause(b.Context) == b.cause { //nolint:errorlint // identity is intended
		return context.DeadlineExceeded
	}
	return err
}

// calls is a heap ordered by deadline.
type calls []*call

func (c calls) Len() int           { return len(c) }
func (c calls) Less(i, j int) bool { return c[i].at.Before(c[j].at) }

func (c calls) Swap(i, j int) {
	c[i], c[j] = c[j], c[i]
	c[i].index, c[j].index = i, j
}

// Push appends a call.
func (c *calls) Push(x any) {
	x.(*call).index = len(*c)
	*c = append(*c, x.(*call))
}

// Pop removes the last call.
func (c *calls) Pop() any {
	last := len(*c) - 1
	x := (*c)[last]
	(*c)[last], x.index = nil, -1
	*c = (*c)[:last]
	return x
}
