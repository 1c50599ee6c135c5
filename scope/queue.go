package scope

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// container names what is queued for: one scope of one store.
type container struct {
	state               *state
	workspace, kind, id string
}

// kindOf is what has a floor: the kind of a container, without its id.
func (c container) kindOf() container { return container{workspace: c.workspace, kind: c.kind} }

// queues are the queues of a store, one for each container that somebody is at. Whoever
// comes waits for all who came before, but those who need not be alone go together with
// others like them. Safe for concurrent use.
//
// Rejected: a channel or a goroutine a container (there are as many containers as users
// have sessions, and who frees one that nobody uses?); a plain mutex (it is not fair, and
// who waits for it cannot leave).
type queues struct {
	mu sync.Mutex
	// INVARIANT: a line is here exactly while somebody is in it or waits.
	by map[container]*queue
}

type queue struct {
	inside  int // those in it
	alone   bool
	waiting []*ticket
}

type ticket struct {
	alone bool
	in    bool // guarded by lines.mu
	turn  chan struct{}
}

// enter waits for the turn at a container. The function must be called, once, when it is over.
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

// join goes in, or stands in the line.
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

// withdraw leaves the line, or what it had come into meanwhile.
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

// call lets in who may go in now. REQUIRES: mu
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

// held is what a context knows of containers that are being changed.
type held struct {
	container
	up   *held
	over atomic.Bool // who keeps the context beyond its function holds nothing
}

type heldKey struct{}

// holding returns the context of a function that changes a container. The function that is
// returned ends that.
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
