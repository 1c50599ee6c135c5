package reactions

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/lease"
)

// end records the end of a lease, together with others'. Where that fails, it is
// tried again for as long as the lease may last.
func (w *Worker) end(l *Lease, e End) {
	defer w.letGo(l)
	for pause := 10 * time.Millisecond; ; pause *= 2 {
		answer := make(chan outcome, 1)
		w.ends <- ending{e, answer}
		o := <-answer
		switch {
		case (o.err != nil || o.Busy) && pause < 5*time.Second:
			w.Log.Debug("the end of a reaction could not be recorded yet", "reaction", l.Reaction, "stream", l.Stream, "error", o.err)
			_ = clock.Wait(context.Background(), pause)
			continue
		case o.err != nil || o.Busy:
			w.Log.Warn("the end of a reaction could not be recorded, and its hold runs out", "reaction", l.Reaction, "stream", l.Stream, "error", o.err)
			w.trace("lost", l, e.Done, o.err)
		case !o.Recorded:
			w.Log.Warn("a reaction lost its stream before its end was recorded", "reaction", l.Reaction, "stream", l.Stream)
			w.trace("lost", l, e.Done, nil)
		case e.Error != "":
			w.trace("failed", l, e.Done, errors.New(e.Error))
		default:
			w.trace("acked", l, e.Done, nil)
		}
		return
	}
}

// ackBy records ends, as many at a time as there are.
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
		ctx, cancel := context.WithTimeout(context.Background(), recordPatience)
		out, err := Ack(ctx, w.Engine, ends)
		cancel()
		for i, e := range some {
			if err != nil {
				e.done <- outcome{err: err}
				continue
			}
			e.done <- outcome{Ended: out[i]}
		}
	}
}

const recordPatience = 10 * time.Second

// renew keeps the leases in hand.
func (w *Worker) renew(stopped <-chan struct{}) {
	shortest := w.shortest()
	tick := time.NewTicker(max(shortest/3, 10*time.Millisecond))
	defer tick.Stop()
	failing := clock.Now()
	for {
		select {
		case <-tick.C:
		case <-w.tuned:
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

// shortest is the shortest lease that is served, or in hand.
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

func (w *Worker) renewAll(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), max(patience/3, 50*time.Millisecond))
	defer cancel()
	byShard := make(map[int16][]*Lease)
	var over []*Lease
	w.mu.Lock()
	for l, g := range w.held {
		if clock.Since(g.since) < w.patience(l, g) {
			byShard[l.Shard] = append(byShard[l.Shard], l)
		} else {
			over = append(over, l)
		}
	}
	w.mu.Unlock()
	for _, l := range over {
		if w.lose(l) { // nobody has begun with it
			w.aside.Go(func() { w.end(l, End{Lease: l, Done: l.Watermark, Unfinished: true}) })
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

// patience is how long a lease is renewed: a body that hangs, whatever its context
// says, is not kept for ever, nor what waits behind it. What is not renewed runs
// out, and goes to another node. REQUIRES: mu
func (w *Worker) patience(l *Lease, g *heldLease) time.Duration {
	h := w.handler(l)
	if g.begun {
		return h.Timeout
	}
	return max(3*h.Lease, h.Timeout)
}

// lose tells the body of a lease that is lost, unless it has ended meanwhile. It
// says whether there was none yet, and will be none.
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

// stop tells the body of a lease whose stream is to be reset. It ends the lease, which resets the stream; where it
// does not, the lease expires. One that nobody has begun with is ended here.
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
		w.aside.Go(func() { w.end(l, End{Lease: l, Done: l.Watermark, Unfinished: true}) })
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
