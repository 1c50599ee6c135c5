// Package live tells many watchers of a workspace what changes in it.
//
// One reader per workspace and node ([Hub]) reads what is new and gives it to all watchers ([Watcher]), while there are any. A
// watcher keeps what matches its topics until it is taken. The reader never waits for a watcher: what a watcher does
// not take in time is folded to the names of the subjects that changed, which are bounded, too.
//
// Guarantees, and why they hold:
//
//   - Every event is told once. A [Place] says exactly which events were returned: on PostgreSQL by the snapshot of the
//     read, on SQLite by the times of the events, which are those of the commits. A watcher gets the place with
//     each message, so it can continue on any node, and after a restart.
//   - The cost is bounded. A read is followed by a pause that is longer by a factor ([share]). Under load the messages
//     become fewer and larger. If the reader falls behind for good, it begins again at the present, and says so ([Message.Reset]).
//
// What is not told: events whose id is older than their transaction by more than 30 seconds (the clock of a node that is
// late, or a command that waited so long before it began); events of a transaction that was open for more than ten minutes. On
// PostgreSQL, events that were written in a savepoint of a user's transaction, if a read took place between the write and
// the COMMIT: their snapshots do not name subtransactions. On SQLite, events of the time by which the clock was set back, if that is less than a second.
package live

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

const (
	// tick is the shortest time between two reads, and between two messages to a watcher.
	tick = 250 * time.Millisecond
	// farEvery is the shortest time between two reads that go back to events with old ids.
	farEvery = 4 * time.Second
	// stateEvery is the shortest time between two reads of the same state.
	stateEvery = time.Second
	// stateWithin is the longest time between two reads of the states. A read takes long if the database is far away or busy, and not
	// only because of what it costs.
	stateWithin = 2 * time.Second
	// share is how many times longer than a read, and than telling it to all watchers, the pause after it is. Reads of events,
	// those that go back far, and reads of states that take less than 30 ms each have such pauses, so all three together take at
	// most a twentieth of one processor core.
	share = 60
	// quiet is how long a watcher gets nothing. Then it gets the place, so that it can continue there.
	quiet = 10 * time.Second
	// behind is how long the reader may fail to catch up.
	behind = 30 * time.Second
	// maxPages bounds what is read for a watcher that continues. A watcher that has missed more begins again at the present.
	maxPages = 40
)

// Source is what a hub reads.
type Source interface {
	// Start returns the present place of the context's workspace.
	Start(ctx context.Context) (Place, error)
	// Read returns the events after a place; see [Read].
	Read(ctx context.Context, from Place, far bool, limit int) (Batch, error)
	// State returns the present value of a topic, as JSON can encode it.
	State(ctx context.Context, topic string) (any, error)
}

// Value is the state of a topic. It is replaced if the state changes.
type Value struct {
	Any  any
	text []byte
}

// Hub has the readers of a node. It is safe for concurrent use.
type Hub struct {
	Source Source
	// In returns a context of a workspace.
	In  func(workspace string) context.Context
	Log *slog.Logger

	mu      sync.Mutex
	readers map[string]*reader
}

// reader reads one workspace while it has watchers.
type reader struct {
	hub   *Hub
	ready chan struct{} // closed when place is set, or failed
	stop  context.CancelFunc
	done  sync.WaitGroup
	asked chan struct{} // a watcher wants a state

	mu      sync.Mutex
	members map[member]bool
	failed  error // of the start
	place   Place
	at      time.Time // of the database, at the last read
	read    time.Time // of the node, at the last read
	values  map[string]*Value
}

// member is a watcher or a follower.
type member interface {
	// add gives it a batch of the reader, which is shared.
	add(Batch)
	// topics returns the topics whose state it wants.
	topics() []string
	// wake tells it that a state has changed.
	wake()
}

// enter adds a member to the reader of a workspace, and starts the reader if it is the first.
func (h *Hub) enter(workspace string, m member) *reader {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.readers[workspace]
	if r == nil {
		ctx, stop := context.WithCancel(h.In(workspace))
		r = &reader{hub: h, stop: stop, ready: make(chan struct{}), asked: make(chan struct{}, 1), members: make(map[member]bool), values: make(map[string]*Value)}
		if h.readers == nil {
			h.readers = make(map[string]*reader)
		}
		h.readers[workspace] = r
		r.done.Go(func() { r.run(ctx) })
		r.done.Go(func() { r.states(ctx) })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[m] = true
	signal(r.asked)
	return r
}

// leave removes a member. After the last one it ends the reader, and waits for that.
func (h *Hub) leave(workspace string, m member) {
	h.mu.Lock()
	r := h.readers[workspace]
	r.mu.Lock()
	delete(r.members, m)
	last := len(r.members) == 0
	r.mu.Unlock()
	if last {
		delete(h.readers, workspace)
		r.stop()
	}
	h.mu.Unlock()
	if last {
		r.done.Wait()
	}
}

// run reads the workspace until ctx ends.
func (r *reader) run(ctx context.Context) {
	place, err := r.hub.Source.Start(ctx)
	begun := clock.Now()
	r.mu.Lock()
	r.place, r.failed, r.read = place, err, begun
	r.mu.Unlock()
	close(r.ready)
	pace := pacer{far: begun.Add(farEvery), caughtUp: begun}
	for pause := tick; err == nil && clock.Wait(ctx, pause) == nil; {
		begun := clock.Now()
		b, failed := r.hub.Source.Read(ctx, place, !begun.Before(pace.far), limit)
		if failed == nil && b.More && begun.Sub(pace.caughtUp) > behind {
			b = Batch{At: b.At, Reset: true}
			b.Place, failed = r.hub.Source.Start(ctx)
		}
		if failed != nil {
			if ctx.Err() == nil {
				r.hub.Log.Warn("failed to read changes for GET live", "error", failed)
			}
			pause = time.Second
			continue
		}
		place = b.Place
		r.tell(b)
		pause = pace.after(&b, begun)
	}
}

// pacer decides when a reader reads again.
type pacer struct {
	far      time.Time // when a read goes back far again
	caughtUp time.Time // the last read that returned everything
}

// after returns the pause after a read.
func (p *pacer) after(b *Batch, begun time.Time) time.Duration {
	took := clock.Since(begun)
	if b.More {
		return share * took
	}
	p.caughtUp = begun
	if b.Far { // it costs more, which the time until the next one pays for
		p.far = begun.Add(max(farEvery, share*took))
		return tick
	}
	return max(tick, share*took)
}

// tell gives a batch to all watchers.
func (r *reader) tell(b Batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.place, r.at, r.read = b.Place, b.At, clock.Now()
	for m := range r.members {
		m.add(b)
	}
}

// states reads the states that watchers want, until ctx ends.
func (r *reader) states(ctx context.Context) {
	for pause := time.Duration(0); ; {
		if clock.Wait(ctx, pause) != nil {
			return
		}
		begun := clock.Now()
		topics := r.wanted()
		if len(topics) == 0 {
			select {
			case <-r.asked:
				continue
			case <-ctx.Done():
				return
			}
		}
		for topic := range topics {
			if err := r.state(ctx, topic); err != nil && ctx.Err() == nil {
				r.hub.Log.Warn("failed to read the state of a topic of GET live", "topic", topic, "error", err)
			}
		}
		pause = min(max(stateEvery, share*clock.Since(begun)), stateWithin)
	}
}

// wanted returns the topics whose state a watcher wants, and drops the states that nobody wants any more.
func (r *reader) wanted() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string]bool)
	for m := range r.members {
		for _, topic := range m.topics() {
			all[topic] = true
		}
	}
	for topic := range r.values {
		if !all[topic] {
			delete(r.values, topic)
		}
	}
	return all
}

// state reads one state, and wakes the watchers if it has changed.
func (r *reader) state(ctx context.Context, topic string) error {
	value, err := r.hub.Source.State(ctx, topic)
	if err != nil {
		return err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if old := r.values[topic]; old != nil && bytes.Equal(old.text, text) {
		return nil
	}
	r.values[topic] = &Value{value, text}
	for m := range r.members {
		m.wake()
	}
	return nil
}

// signal wakes the receiver of a channel, if it is not woken already.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
