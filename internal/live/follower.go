package live

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// ownPage is how many events of the histories a follower reads at once by itself.
var ownPage = 500

// maxQueue is how many batches wait for a follower. If there are more, they are dropped, and it reads by itself again.
const maxQueue = 4

// Follower gets every event of a workspace, one by one. It reads by itself until it has reached the present, and then gets what the
// reader of the workspace reads for all. A follower that is too slow for that reads by itself again, so the reader
// never waits, and nothing is left out. Only one goroutine may call its methods at a time.
type Follower struct {
	hub       *Hub
	workspace string
	reader    *reader // nil if it has not joined
	own       bool    // it reads by itself
	fresh     bool    // what it reads by itself was begun after it joined, or after batches were dropped
	batch     Batch
	next      int   // of the events of batch
	place     Place // after the last event that was returned
	at        Place // of the batch's reader, at the same moment
	woken     chan struct{}
	joined    *Place // up to where the follower has read by itself; nil if the reader has passed it

	mu    sync.Mutex
	queue []Batch // of the reader
	lost  bool    // the queue was dropped
}

// Follow returns a follower that begins at a place or, without one, at the present. End it with [Follower.Close].
func (h *Hub) Follow(ctx context.Context, workspace string, from *Place) (*Follower, error) {
	f := &Follower{hub: h, workspace: workspace, own: true, woken: make(chan struct{}, 1)}
	if from == nil {
		now, err := h.Source.Start(ctx)
		if err != nil {
			return nil, err
		}
		from = &now
	}
	f.place = *from
	return f, f.read(ctx)
}

// Close ends the follower.
func (f *Follower) Close() {
	if f.reader != nil {
		f.hub.leave(f.workspace, f)
	}
}

// Place returns the place after the event that [Follower.Next] has returned last.
func (f *Follower) Place() Place { return f.place }

// Next waits for the next event. Its data may be left out if it is long.
func (f *Follower) Next(ctx context.Context) (*Item, error) {
	for {
		for f.next < len(f.batch.Items) {
			i := &f.batch.Items[f.next]
			f.next++
			f.at = f.batch.step(f.at, i)
			if known := f.joined != nil && f.joined.covers(i); !known {
				f.place = f.at.with(&f.joined)
				return i, ctx.Err()
			}
		}
		if err := f.more(ctx); err != nil {
			return nil, err
		}
	}
}

// more gets the next batch.
func (f *Follower) more(ctx context.Context) error {
	f.place = f.batch.Place.with(&f.joined)
	if f.own && f.fresh && f.batch.Far && !f.batch.More { // so it has everything that the reader had read then
		f.own, f.joined = false, new(f.place)
	}
	if f.own {
		if !f.batch.More && f.reader == nil {
			if err := f.join(ctx); err != nil {
				return err
			}
		}
		return f.retry(ctx)
	}
	for {
		if b, lost := f.take(); lost {
			f.own, f.fresh, f.joined = true, false, nil
			return f.retry(ctx)
		} else if b != nil {
			f.batch, f.next, f.at = *b, 0, b.start
			return nil
		}
		select {
		case <-f.woken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// join makes it a member of the reader, which must have its place: what the follower then reads by itself is read later, so
// nothing is between the two. If the reader cannot start, the follower goes on by itself.
func (f *Follower) join(ctx context.Context) error {
	r := f.hub.enter(f.workspace, f)
	select {
	case <-r.ready:
	case <-ctx.Done():
		f.hub.leave(f.workspace, f)
		return ctx.Err()
	}
	r.mu.Lock()
	failed := r.failed
	r.mu.Unlock()
	if failed == nil {
		f.reader = r
		return nil
	}
	f.hub.leave(f.workspace, f)
	f.hub.Log.Warn("failed to start reading events for clients that follow them", "workspace", f.workspace, "error", failed)
	return clock.Wait(ctx, time.Second)
}

// take returns the next batch of the reader, or reports that some were dropped.
func (f *Follower) take() (b *Batch, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost {
		f.lost = false
		return nil, true
	}
	if len(f.queue) > 0 {
		b, f.queue = &f.queue[0], f.queue[1:]
	}
	return b, false
}

// read reads the next batch by itself.
func (f *Follower) read(ctx context.Context) error {
	if f.place.old() && f.place.After == "" {
		now, err := f.hub.Source.Start(ctx)
		if err != nil {
			return err
		}
		if now.Far.Read != nil { // SQLite
			f.place.Begun, f.place.After = now.Low, f.place.Low
		}
	}
	f.fresh = f.fresh || f.reader != nil && f.place.After == ""
	b, err := f.hub.Source.Read(ctx, f.place, true, ownPage)
	if err == nil {
		f.batch, f.next, f.at = b, 0, b.start
	}
	return err
}

// retry reads the next batch by itself, as soon as the database can be reached.
func (f *Follower) retry(ctx context.Context) error {
	for {
		err := f.read(ctx)
		if code := fault.CodeOf(err); err == nil || ctx.Err() != nil || code == fault.Validation {
			return err
		}
		f.hub.Log.Warn("failed to read events for a client that follows them", "workspace", f.workspace, "error", err)
		if clock.Wait(ctx, time.Second) != nil {
			return ctx.Err()
		}
	}
}

// add implements member.
func (f *Follower) add(b Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.lost, len(b.Items) == 0 && !b.Reset:
		return
	case b.Reset || len(f.queue) == maxQueue:
		f.queue, f.lost = nil, true
	default:
		f.queue = append(f.queue, b)
	}
	signal(f.woken)
}

func (*Follower) topics() []string { return nil }

func (*Follower) wake() {}
