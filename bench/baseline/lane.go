package baseline

import (
	"context"
	"hash/maphash"
	"sync"
)

// mostInBatch bounds a batch, and with it how long its first caller waits.
const mostInBatch = 256

// call is one caller's request while it waits.
type call[A, R any] struct {
	args A
	out  R
	err  error
	done chan struct{}
}

// lanes are writers that serve callers in batches: a writer takes one call, and
// with it whatever else waits. Calls with the same key go to the same writer,
// so that no two writers ever want the same row.
type lanes[A, R any] struct {
	key func(A) string
	// apart says that calls with one key may not share a batch.
	apart bool
	serve func(context.Context, []*call[A, R]) error

	seed    maphash.Seed
	queues  []chan *call[A, R]
	writers sync.WaitGroup
}

func (l *lanes[A, R]) start(writers int) *lanes[A, R] {
	l.seed = maphash.MakeSeed()
	for range writers {
		queue := make(chan *call[A, R], mostInBatch)
		l.queues = append(l.queues, queue)
		l.writers.Go(func() { l.write(queue) })
	}
	return l
}

// close waits for the writers. Nobody may call any more.
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
	case <-ctx.Done(): // c is the writer's now
		var none R
		return none, ctx.Err()
	}
}

func (l *lanes[A, R]) write(queue chan *call[A, R]) {
	var later []*call[A, R]
	for {
		batch, rest, ok := l.batch(queue, later)
		if !ok {
			return
		}
		later = rest
		err := l.serve(context.Background(), batch)
		for _, c := range batch {
			if err != nil {
				c.err = err
			}
			close(c.done)
		}
	}
}

// batch waits for a call and takes along those that wait too. What may not
// share the batch is returned, to be first in the next one.
func (l *lanes[A, R]) batch(queue chan *call[A, R], waiting []*call[A, R]) (batch, later []*call[A, R], ok bool) {
	if len(waiting) == 0 {
		c, open := <-queue
		if !open {
			return nil, nil, false
		}
		waiting = append(waiting, c)
	}
	for len(waiting) < mostInBatch {
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
	batch, later = split(waiting, l.key)
	return batch, later, true
}

func split[A, R any](waiting []*call[A, R], key func(A) string) (batch, later []*call[A, R]) {
	taken := make(map[string]bool, len(waiting))
	for _, c := range waiting {
		k := key(c.args)
		if taken[k] {
			later = append(later, c)
			continue
		}
		taken[k] = true
		batch = append(batch, c)
	}
	return batch, later
}
