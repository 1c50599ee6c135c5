package baseline

import (
	"context"
	"hash/maphash"
	"sync"
)

// mostInGroup bounds a group, and with it how long its first caller waits.
const mostInGroup = 256

// call is one caller's request while it waits.
type call[A, R any] struct {
	args A
	out  R
	err  error
	done chan struct{}
}

// lanes are writers that serve callers in groups: a writer takes one call, and
// with it all others that wait. Calls with the same key go to the same writer,
// so that no two writers ever write the same row.
type lanes[A, R any] struct {
	key func(A) string
	// apart says that calls with the same key must not be in one group.
	apart bool
	serve func(context.Context, []*call[A, R]) error

	seed    maphash.Seed
	queues  []chan *call[A, R]
	writers sync.WaitGroup
}

func (l *lanes[A, R]) start(writers int) *lanes[A, R] {
	l.seed = maphash.MakeSeed()
	for range writers {
		queue := make(chan *call[A, R], mostInGroup)
		l.queues = append(l.queues, queue)
		l.writers.Go(func() { l.write(queue) })
	}
	return l
}

// close waits for the writers. do must not be called any more.
func (l *lanes[A, R]) close() {
	for _, queue := range l.queues {
		close(queue)
	}
	l.writers.Wait()
}

func (l *lanes[A, R]) do(ctx context.Context, args A) (R, error) {
	c := &call[A, R]{args: args, done: make(chan struct{})}
	queue := l.queues[0]
	if n := len(l.queues); n > 1 {
		queue = l.queues[maphash.String(l.seed, l.key(args))%uint64(n)]
	}
	select {
	case queue <- c:
	case <-ctx.Done():
		return c.out, ctx.Err()
	}
	select {
	case <-c.done:
		return c.out, c.err
	case <-ctx.Done(): // the writer may still write to c
		var none R
		return none, ctx.Err()
	}
}

func (l *lanes[A, R]) write(queue chan *call[A, R]) {
	var later []*call[A, R]
	for {
		group, rest, ok := l.group(queue, later)
		if !ok {
			return
		}
		later = rest
		err := l.serve(context.Background(), group)
		for _, c := range group {
			if err != nil {
				c.err = err
			}
			close(c.done)
		}
	}
}

// group waits for a call, and takes those that wait too. later are the calls
// that must not be in this group. They are the first of the next one.
func (l *lanes[A, R]) group(queue chan *call[A, R], waiting []*call[A, R]) (group, later []*call[A, R], ok bool) {
	if len(waiting) == 0 {
		c, open := <-queue
		if !open {
			return nil, nil, false
		}
		waiting = append(waiting, c)
	}
	for len(waiting) < mostInGroup {
		select {
		case c, open := <-queue:
			if open {
				waiting = append(waiting, c)
				continue
			}
		default:
		}
		break
	}
	if !l.apart {
		return waiting, nil, true
	}
	group, later = split(waiting, l.key)
	return group, later, true
}

func split[A, R any](waiting []*call[A, R], key func(A) string) (group, later []*call[A, R]) {
	taken := make(map[string]bool, len(waiting))
	for _, c := range waiting {
		k := key(c.args)
		if taken[k] {
			later = append(later, c)
			continue
		}
		taken[k] = true
		group = append(group, c)
	}
	return group, later
}
