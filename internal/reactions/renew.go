package reactions

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/lease"
)

// end records the end of a lease, in one statement with others. It retries a few
// times with growing pauses; after that the lease expires. A worker that does not run
// tries once.
func (w *Worker) end(l *Lease, e End) {
	defer w.untrack(l)
	w.inBody(l, false)
	for pause := 10 * time.Millisecond; ; pause *= 2 {
		o := w.recordOne(e)
		switch {
		case (o.err != nil || o.Busy) && w.ends != nil && pause < 5*time.Second:
			w.Log.Debug("failed to record the end of a lease; retrying", "workspace", l.Workspace, "reaction", l.Reaction, "stream", l.Stream, "epoch", l.Epoch, "error", o.err)
			_ = clock.Wait(context.Background(), pause)
			continue
		case o.err != nil || o.Busy:
			w.Log.Warn("failed to record the end of a lease; the lease will expire", "workspace", l.Workspace, "reaction", l.Reaction, "stream", l.Stream, "epoch", l.Epoch, "error", o.err)
			w.trace("lost", l, e.Done, o.err)
		case !o.Recorded:
			w.Log.Warn("lease lost before its end was recorded", "workspace", l.Workspace, "reaction", l.Reaction, "stream", l.Stream, "epoch", l.Epoch)
			w.trace("lost", l, e.Done, nil)
		case e.Error != "":
			w.trace("failed", l, e.Done, errors.New(e.Error))
		default:
			w.trace("acked", l, e.Done, nil)
		}
		return
	}
}

func (w *Worker) recordOne(e End) outcome {
	answer := make(chan outcome, 1)
	if x := (ending{e, answer}); w.ends != nil {
		w.ends <- x
	} else {
		w.recordAll(map[int16][]ending{e.Lease.Shard: {x}})
	}
	return <-answer
}

// record records ends, as many at a time as are ready.
func (w *Worker) record(stopped <-chan struct{}) {
	for {
		select {
		case first := <-w.ends:
			w.recordAll(w.collectEnds(first))
		case <-stopped:
			return
		}
	}
}

func (w *Worker) collectEnds(first ending) map[int16][]ending {
	all := map[int16][]ending{first.Lease.Shard: {first}}
	for range ackLimit {
		select {
		case e := <-w.ends:
			all[e.Lease.Shard] = append(all[e.Lease.Shard], e)
		default:
			return all
		}
	}
	return all
}

func (w *Worker) recordAll(all map[int16][]ending) {
	for _, some := range all {
		ends := make([]End, len(some))
		for i, e := range some {
			ends[i] = e.End
		}
		ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
		out, err := Ack(ctx, w.Engine, ends)
		cancel()
		if err == nil {
			w.Hub.Tally.Reactions.Add(int64(len(some)))
		}
		for i, e := range some {
			if err != nil {
				e.done <- outcome{err: err}
				continue
			}
			e.done <- outcome{Ended: out[i]}
		}
	}
}

const recordTimeout = 10 * time.Second

// renew renews the held leases until stopped is closed.
func (w *Worker) renew(stopped <-chan struct{}) {
	shortest := w.shortest()
	tick := time.NewTicker(max(shortest/3, 10*time.Millisecond))
	defer tick.Stop()
	failing := clock.Now()
	for {
		select {
		case <-tick.C:
		case <-w.handlersChanged:
			if s := w.shortest(); s != shortest {
				shortest = s
				tick.Reset(max(shortest/3, 10*time.Millisecond))
			}
			continue
		case <-stopped:
			return
		}
		if err := w.renewAll(shortest); err == nil {
			failing = clock.Now()
		} else if clock.Since(failing) >= shortest {
			w.loseAll()
		}
	}
}

// shortest returns the shortest lease duration of all handlers and held leases.
func (w *Worker) shortest() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	shortest := lease.DefaultDuration
	for _, h := range w.handlers {
		shortest = min(shortest, h.Lease)
	}
	for l := range w.held {
		shortest = min(shortest, l.by.Lease)
	}
	return shortest
}

func (w *Worker) renewAll(shortest time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), max(shortest/3, 50*time.Millisecond))
	defer cancel()
	byShard := make(map[int16][]*Lease)
	var over []*Lease
	w.mu.Lock()
	for l, g := range w.held {
		if clock.Since(g.since) < w.renewalLimit(l, g) {
			byShard[l.Shard] = append(byShard[l.Shard], l)
		} else {
			over = append(over, l)
		}
	}
	w.mu.Unlock()
	for _, l := range over {
		if w.lose(l) { // its body has not begun
			w.detached.Go(func() { w.end(l, End{Lease: l, Done: l.Watermark, Unfinished: true}) })
		}
	}
	for _, leases := range byShard {
		renewals, err := Renew(ctx, w.Engine, leases, func(l *Lease) time.Duration { return w.handler(l).Lease })
		if err != nil {
			return err
		}
		for i, l := range leases {
			switch r := renewals[i]; {
			case r.Until.IsZero():
				w.lose(l)
			case r.CancelRequested:
				w.stop(l)
			}
		}
	}
	return nil
}

// renewalLimit returns how long a lease is renewed. A body that ignores its
// context must not hold its stream forever, nor the leases queued behind it. A
// lease that is not renewed expires, and another node takes the stream.
// REQUIRES: mu
func (w *Worker) renewalLimit(l *Lease, g *heldLease) time.Duration {
	h := w.handler(l)
	if g.begun {
		return h.Timeout
	}
	return max(3*h.Lease, h.Timeout)
}

// lose stops tracking a lost lease and cancels its body. It reports whether the
// body has not begun; then it never will.
func (w *Worker) lose(l *Lease) (untouched bool) {
	w.mu.Lock()
	g := w.held[l]
	if g != nil {
		delete(w.held, l)
		if l.Group > 0 {
			w.crashedLeases[l.Shard]--
		}
		if g.begun {
			w.stuck[l.stream()] = false
		}
	}
	w.mu.Unlock()
	if g != nil && g.lost != nil {
		g.lost(lease.ErrLost)
	}
	return g != nil && g.lost == nil
}

// stop cancels the body of a lease whose stream has to be reset. The body ends
// the lease, which resets the stream; if it does not, the lease expires. A lease
// whose body has not begun is ended here.
func (w *Worker) stop(l *Lease) {
	w.mu.Lock()
	g := w.held[l]
	if g == nil || g.lost != nil {
		w.mu.Unlock()
		if g != nil {
			g.lost(errReset)
		}
		return
	}
	w.mu.Unlock()
	if w.lose(l) {
		w.detached.Go(func() { w.end(l, End{Lease: l, Done: l.Watermark, Unfinished: true}) })
	}
}

func (w *Worker) loseAll() {
	w.mu.Lock()
	all := make([]*Lease, 0, len(w.held))
	for l := range w.held {
		all = append(all, l)
	}
	w.mu.Unlock()
	for _, l := range all {
		w.lose(l)
	}
}
