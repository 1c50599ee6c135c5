package scope

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// container identifies one scope of one store: callers queue per container.
type container struct {
	state               *state
	workspace, kind, id string
}

// kindOf returns the container without its id: the key of the version floors.
func (c container) kindOf() container { return container{workspace: c.workspace, kind: c.kind} }

// queues are the queues of a store, one per container in use. A caller waits for all callers that
// came before it; consecutive callers that do not need exclusive access go together. Safe for
// concurrent use.
//
// Rejected: a channel or a goroutine per container (there are as many containers as users have
// sessions, and unused ones would have to be freed); a plain mutex (it is not fair, and a waiting
// caller cannot leave).
type queues struct {
	mu sync.Mutex
	// INVARIANT: a queue is in the map exactly while a caller is inside or waits.
	by map[container]*queue
}

type queue struct {
	inside  int // callers inside
	alone   bool
	waiting []*ticket
}

type ticket struct {
	alone bool
	in    bool // guarded by queues.mu
	turn  chan struct{}
}

// enter waits for the caller's turn at a container. leave must be called exactly once afterwards.
func (l *queues) enter(ctx context.Context, c container, alone bool) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := l.join(c, alone)
	if t == nil {
		return func() { l.leave(c) }, nil
	}
	select {
	case <-t.turn:
		return func() { l.leave(c) }, nil
	case <-ctx.Done():
	}
	l.withdraw(c, t)
	return nil, ctx.Err()
}

// join enters at once and returns nil, or returns a ticket to wait with.
func (l *queues) join(c container, alone bool) *ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.by[c]
	if q == nil {
		if l.by == nil {
			l.by = make(map[container]*queue)
		}
		q = new(queue)
		l.by[c] = q
	}
	if len(q.waiting) == 0 && q.admits(alone) {
		q.inside++
		q.alone = alone
		return nil
	}
	t := &ticket{alone: alone, turn: make(chan struct{})}
	q.waiting = append(q.waiting, t)
	return t
}

func (q *queue) admits(alone bool) bool { return q.inside == 0 || !q.alone && !alone }

func (l *queues) leave(c container) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.by[c]
	q.inside--
	l.call(c, q)
}

// withdraw leaves the queue, or gives up a turn that was granted meanwhile.
func (l *queues) withdraw(c container, t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.by[c]
	if t.in {
		q.inside--
	} else {
		q.waiting = slices.DeleteFunc(q.waiting, func(o *ticket) bool { return o == t })
	}
	l.call(c, q)
}

// call admits the waiting callers that may enter now. REQUIRES: mu
func (l *queues) call(c container, q *queue) {
	for len(q.waiting) > 0 && q.admits(q.waiting[0].alone) {
		t := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.inside++
		q.alone, t.in = t.alone, true
		close(t.turn)
	}
	if q.inside == 0 && len(q.waiting) == 0 {
		delete(l.by, c)
	}
}

// held is a container that is being changed, linked to the outer ones in a context.
type held struct {
	container
	up   *held
	over atomic.Bool // set when the function returns: a context used after that holds nothing
}

type heldKey struct{}

// holding returns the context for a function that changes a container. end marks the change as
// over.
func holding(ctx context.Context, c container) (in context.Context, end func()) {
	up, _ := ctx.Value(heldKey{}).(*held)
	h := &held{container: c, up: up}
	return context.WithValue(ctx, heldKey{}, h), func() { h.over.Store(true) }
}

func holds(ctx context.Context, c container) bool {
	up, _ := ctx.Value(heldKey{}).(*held)
	for ; up != nil; up = up.up {
		if up.container == c && !up.over.Load() {
			return true
		}
	}
	return false
}
