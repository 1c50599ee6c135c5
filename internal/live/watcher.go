package live

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

const (
	// maxItems is how many events a message has. More are folded.
	maxItems = 100
	// maxFolds is how many subjects a message names. If more have changed, it says only that.
	maxFolds = 200
)

// Fold is a subject that has changed.
type Fold struct {
	Stream  string
	Version int64 // of its last event
	Events  int
}

// Message is what a watcher is told.
type Message struct {
	Place Place
	At    time.Time     // of the database, when it was read
	Lag   time.Duration // since then
	// Items are the events that match. If there are too many, Folds has their subjects instead.
	Items []Item
	Folds []Fold
	// Reset reports that there may have been other changes.
	Reset bool
	// States are the states that have changed since the last message. A message has either states or changes.
	States map[string]*Value
}

// Watcher waits for what changes in a workspace. Only one goroutine may call its methods at a time.
type Watcher struct {
	hub       *Hub
	workspace string
	match     func(*Item) bool
	states    []string
	reader    *reader
	woken     chan struct{}

	sent      map[string]*Value
	told      Place     // of the last message
	last      time.Time // of the last message
	stateNext bool

	mu      sync.Mutex
	pending Message
	news    bool    // pending has the place of a batch
	joining bool    // batches are collected, because an earlier read is not complete
	held    []Batch // REQUIRES: joining
	joined  *Place  // up to where the watcher has read by itself, nil if the reader has passed it
}

// Watch returns a watcher of the events that match, and of states. It begins at a place or, without one, at the
// present. End it with [Watcher.Close].
func (h *Hub) Watch(ctx context.Context, workspace string, match func(*Item) bool, states []string, from *Place) (*Watcher, error) {
	w := &Watcher{hub: h, workspace: workspace, match: match, states: states, woken: make(chan struct{}, 1), sent: make(map[string]*Value), joining: from != nil}
	if from != nil {
		w.pending.Place = *from
		if err := w.catchUp(ctx); err != nil { // most of it, before anything must be collected
			return nil, err
		}
	}
	w.reader = h.enter(workspace, w)
	if err := w.start(ctx); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Once returns what has changed since a place, and the states. Without a place, it returns the present one.
func (h *Hub) Once(ctx context.Context, match func(*Item) bool, states []string, from *Place) (m Message, err error) {
	w := &Watcher{hub: h, match: match}
	if from == nil {
		w.pending.Place, err = h.Source.Start(ctx)
	} else {
		w.pending.Place = *from
		err = w.catchUp(ctx)
	}
	if err != nil {
		return m, err
	}
	m = w.pending
	m.States = make(map[string]*Value)
	for _, topic := range states {
		value, err := h.Source.State(ctx, topic)
		if err != nil {
			return m, err
		}
		m.States[topic] = &Value{Any: value}
	}
	return m, nil
}

// Close ends the watcher.
func (w *Watcher) Close() { w.hub.leave(w.workspace, w) }

// start waits for the reader, and makes the watcher continue where it is.
func (w *Watcher) start(ctx context.Context) error {
	select {
	case <-w.reader.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	if !w.joining {
		w.reader.mu.Lock()
		defer w.reader.mu.Unlock()
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.news && w.reader.failed == nil { // otherwise it has the place of a batch
			w.pending.Place = w.reader.place
		}
		return w.reader.failed
	}
	if w.reader.failed != nil {
		return w.reader.failed
	}
	// What the reader returns from now on is collected. What is read here is read later than the reader's place, so
	// nothing is between the two; what both return is left out of the reader's batches.
	if err := w.catchUp(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.joined, w.joining = new(w.pending.Place), false
	for _, b := range w.held {
		w.addLocked(b)
	}
	w.held = nil
	return nil
}

// catchUp reads what the watcher has missed.
func (w *Watcher) catchUp(ctx context.Context) error {
	for pages := 0; ; pages++ {
		var b Batch
		var err error
		missed := w.pending.Place.old()
		if !missed {
			b, err = w.hub.Source.Read(ctx, w.pending.Place, true, limit)
			missed = err == nil && b.More && pages >= maxPages
		}
		if missed {
			b = Batch{At: b.At, Reset: true}
			b.Place, err = w.hub.Source.Start(ctx)
		}
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.addLocked(b)
		w.mu.Unlock()
		if !b.More {
			return nil
		}
	}
}

func (w *Watcher) topics() []string { return w.states }

func (w *Watcher) wake() { signal(w.woken) }

// add gives a batch of the reader to the watcher.
func (w *Watcher) add(b Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.joining {
		w.held = append(w.held, b)
		return
	}
	w.addLocked(b)
}

// addLocked adds the events of a batch that match. REQUIRES: mu
func (w *Watcher) addLocked(b Batch) {
	p := &w.pending
	for i := range b.Items {
		if p.Reset { // it says all that can be said, and costs nothing
			break
		}
		if item := &b.Items[i]; w.match(item) && (w.joined == nil || !w.joined.covers(item)) {
			p.add(item)
		}
	}
	p.Reset = p.Reset || b.Reset
	p.Place = b.Place.with(&w.joined)
	p.At = b.At
	w.news = true
	if p.changes() {
		signal(w.woken)
	}
}

// add adds an event to a message, or folds it.
func (m *Message) add(i *Item) {
	if len(m.Folds) == 0 && len(m.Items) < maxItems {
		m.Items = append(m.Items, *i)
		return
	}
	items := m.Items
	m.Items = nil
	for k := range items {
		m.fold(&items[k])
	}
	m.fold(i)
}

func (m *Message) fold(i *Item) {
	at, ok := slices.BinarySearchFunc(m.Folds, i.Stream, func(f Fold, stream string) int { return strings.Compare(f.Stream, stream) })
	switch {
	case ok:
		f := &m.Folds[at]
		f.Version, f.Events = max(f.Version, i.Version), f.Events+1
	case len(m.Folds) == maxFolds:
		m.Folds, m.Reset = nil, true
	default:
		m.Folds = slices.Insert(m.Folds, at, Fold{i.Stream, i.Version, 1})
	}
}

// Next waits for the next message, at most one in each quarter of a second. The first comes at once: it has the place
// from which on everything is told.
func (w *Watcher) Next(ctx context.Context) (Message, error) {
	if err := clock.Wait(ctx, tick-clock.Since(w.last)); err != nil {
		return Message{}, err
	}
	idle := time.NewTimer(quiet - clock.Since(w.last))
	defer idle.Stop()
	for due := w.last.IsZero(); ; {
		if m, ok := w.take(due); ok {
			w.told, w.last = m.Place, clock.Now()
			return m, nil
		}
		select {
		case <-w.woken:
		case <-idle.C:
			due = true
		case <-ctx.Done():
			return Message{}, ctx.Err()
		}
	}
}

// take returns the next message if there is one, or if one is due in any case. Changes and states take turns.
func (w *Watcher) take(due bool) (m Message, ok bool) {
	r := w.reader
	r.mu.Lock()
	defer r.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	states, changes := w.changed(), w.pending.changes()
	if len(states) > 0 && (w.stateNext || !changes && !due) {
		m = Message{Place: w.pending.Place, States: states}
		if changes { // they are not told yet
			m.Place = w.told
		}
		maps.Copy(w.sent, states)
	} else if changes || due {
		m = w.pending
		w.pending = Message{Place: m.Place}
	} else {
		return m, false
	}
	w.stateNext = m.States == nil
	m.At, m.Lag = r.at, max(0, clock.Since(r.read))
	return m, true
}

// changes reports whether a message has changes.
func (m *Message) changes() bool { return len(m.Items)+len(m.Folds) > 0 || m.Reset }

// changed returns the states that differ from those that were sent. REQUIRES: reader.mu, mu
func (w *Watcher) changed() map[string]*Value {
	var all map[string]*Value
	for _, topic := range w.states {
		if v := w.reader.values[topic]; v != nil && v != w.sent[topic] {
			if all == nil {
				all = make(map[string]*Value)
			}
			all[topic] = v
		}
	}
	return all
}
