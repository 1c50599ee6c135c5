package store

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// ErrAlone is what a round says of a member that it could not serve without
// holding up the others: the member's caller then runs it by itself.
var ErrAlone = errors.New("the command must run alone")

// Rounds is how an adapter serves commands for a [Grouper].
type Rounds struct {
	// Queue names the queue of a command: only members of one queue share a
	// round. A queue of "" is never grouped.
	Queue func(Command) string
	// Fits begins a round: the function that it returns says of one command
	// after the other whether it may join those before it.
	Fits func() func(Command) bool
	// Exclusive says that no two rounds under way may share a row: the second
	// would find it locked, and its members would all have to run alone.
	Exclusive bool
	// Most is how many members a round has at the most.
	Most int
	// Lone serves a caller that nobody else waits behind, in a slot. It may
	// answer [ErrAlone].
	Lone func(context.Context, Command) error
	// Acquire gets what a round needs, a connection, before anybody is taken
	// into the round: until then each caller can still leave.
	Acquire func() (with any, release func(), err error)
	// Serve runs a round and returns each member's error; nil says that the
	// member has its answer, applied or refused. No caller's context reaches
	// it.
	Serve func(with any, members []Command) []error
	// Alone runs a command outside the slots, where it may wait for a lock.
	Alone func(context.Context, Command) error
	// Slots says how many rounds may run at once, given how long one takes.
	Slots func(time.Duration) int
}

// Grouper lets callers share a round trip and a commit.
//
// A caller that finds a free slot is served at once, by itself: nobody waits
// when nobody else does. A caller that finds none waits in its queue, and
// whoever frees a slot takes along all that wait and fit together. So groups
// form by themselves, as large as the load is, and there is no timer.
//
// What it guarantees:
//
//   - Each caller gets its own answer and its own error. What one member meets
//     touches no other: a round that cannot serve a member says [ErrAlone], and
//     the member's own goroutine runs it outside the slots.
//   - A caller whose context ends while it waits leaves, and is not applied. Once
//     its round has begun it waits for the answer, which the adapter bounds.
//   - A slot is never held while waiting for a lock of somebody else's: rounds
//     skip locked rows, a lone caller's patience is short.
//
// Rejected: one goroutine that serves all (a switch of goroutine for every lone
// caller, and one slow statement stops everybody); a timer that waits for more
// members (the lone caller pays for it).
type Grouper struct {
	Rounds

	mu sync.Mutex
	// INVARIANT: waiting is empty or busy > 0.
	busy    int
	latency time.Duration // of a round, smoothed
	waiting []string      // queues with callers, in the order they were filled
	queues  map[string][]*call
	held    map[Key]bool // rows that a round under way has, where rounds are exclusive
}

// call is a caller's command while it waits.
type call struct {
	c     Command
	taken bool // by a round; guarded by Grouper.mu
	err   error
	done  chan struct{}
}

// NewGrouper returns a grouper that serves through r.
func NewGrouper(r Rounds) *Grouper {
	return &Grouper{Rounds: r, queues: make(map[string][]*call), held: make(map[Key]bool)}
}

// Do runs a command and commits it, alone or with others.
func (g *Grouper) Do(ctx context.Context, c Command) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	queue := g.Queue(c)
	if queue == "" {
		return g.Alone(ctx, c)
	}
	w, free := g.enter(queue, c)
	if free {
		return g.orAlone(ctx, c, g.lone(ctx, c))
	}
	return g.orAlone(ctx, c, g.wait(ctx, queue, w))
}

// lone serves a caller in the slot that it has, and gives the slot on, also if
// the caller's goroutine panics.
func (g *Grouper) lone(ctx context.Context, c Command) error {
	defer g.leave(c)
	return g.timed(func() error { return g.Lone(ctx, c) })
}

func (g *Grouper) orAlone(ctx context.Context, c Command, err error) error {
	if errors.Is(err, ErrAlone) {
		return g.Alone(ctx, c)
	}
	return err
}

// enter takes a free slot, or stands in the queue.
func (g *Grouper) enter(queue string, c Command) (w *call, free bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy < g.Slots(g.latency) && len(g.waiting) == 0 && g.apart(c) {
		g.hold(c)
		g.busy++
		return nil, true
	}
	w = &call{c: c, done: make(chan struct{})}
	if len(g.queues[queue]) == 0 {
		g.waiting = append(g.waiting, queue)
	}
	g.queues[queue] = append(g.queues[queue], w)
	if g.busy < g.Slots(g.latency) { // there are more slots than there were
		g.busy++
		go g.drain()
	}
	return w, false
}

// wait waits for the round that serves a caller. A caller whose context ends
// before leaves the queue. Once a round has it, it stays: the round writes the
// answer into its command, and is bounded by the adapter.
func (g *Grouper) wait(ctx context.Context, queue string, w *call) error {
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
	}
	if g.withdraw(queue, w) {
		return ctx.Err()
	}
	<-w.done
	return w.err
}

// withdraw takes a caller out of its queue, unless a round has it already.
func (g *Grouper) withdraw(queue string, w *call) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w.taken {
		return false
	}
	g.queues[queue] = slices.DeleteFunc(g.queues[queue], func(o *call) bool { return o == w })
	if len(g.queues[queue]) == 0 {
		delete(g.queues, queue)
		g.waiting = slices.DeleteFunc(g.waiting, func(q string) bool { return q == queue })
	}
	return true
}

// leave gives the slot of a lone caller to those who wait, or back.
func (g *Grouper) leave(c Command) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free(c)
	if len(g.waiting) > 0 {
		go g.drain()
		return
	}
	g.busy--
}

// drain serves rounds in one slot until nobody waits.
func (g *Grouper) drain() {
	for g.round() {
		runtime.Gosched() // those who were just answered may come again, and share the next
	}
}

// round serves one round, and says whether the slot is still held.
func (g *Grouper) round() bool {
	with, release, err := g.Acquire()
	round := g.next()
	if err == nil {
		defer release()
	}
	if round == nil {
		return false
	}
	g.serve(round, func(members []Command) []error {
		if err != nil { // each caller waits for itself, with its own context
			return slices.Repeat([]error{ErrAlone}, len(members))
		}
		return g.Serve(with, members)
	})
	return true
}

// next takes the oldest queue's callers as far as they fit together, or gives
// the slot back.
func (g *Grouper) next() []*call {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 || g.busy > max(1, g.Slots(g.latency)) {
		g.busy--
		return nil
	}
	for range len(g.waiting) {
		if round := g.take(); len(round) > 0 {
			return round
		}
	}
	// All who wait want rows that rounds under way have: those take them along
	// when they are done.
	g.busy--
	return nil
}

// take takes what fits of the oldest queue, and puts the rest behind the others.
func (g *Grouper) take() []*call {
	queue := g.waiting[0]
	g.waiting = g.waiting[1:]
	round, rest := g.pick(g.queues[queue])
	if len(rest) > 0 {
		g.queues[queue] = rest
		g.waiting = append(g.waiting, queue)
	} else {
		delete(g.queues, queue)
	}
	return round
}

// apart says that no round under way has a row of the command. REQUIRES: mu
func (g *Grouper) apart(c Command) bool {
	if !g.Exclusive || len(g.held) == 0 {
		return true
	}
	return !slices.ContainsFunc(c.Keys(), func(k Key) bool { return g.held[k] })
}

// hold notes the rows of a command that is about to run. REQUIRES: mu
func (g *Grouper) hold(c Command) {
	if g.Exclusive {
		for _, k := range c.Keys() {
			g.held[k] = true
		}
	}
}

// free forgets them. REQUIRES: mu
func (g *Grouper) free(c Command) {
	if g.Exclusive {
		for _, k := range c.Keys() {
			delete(g.held, k)
		}
	}
}

func (g *Grouper) pick(queue []*call) (round, rest []*call) {
	fits := g.Fits()
	for _, w := range queue {
		if len(round) < g.Most && g.apart(w.c) && fits(w.c) {
			w.taken = true
			round = append(round, w)
		} else {
			rest = append(rest, w)
		}
	}
	for _, w := range round {
		g.hold(w.c)
	}
	return round, rest
}

func (g *Grouper) serve(round []*call, serve func([]Command) []error) {
	members := make([]Command, len(round))
	for i, w := range round {
		members[i] = w.c
	}
	var errs []error
	_ = g.timed(func() error { errs = serve(members); return nil })
	g.mu.Lock()
	for _, w := range round {
		g.free(w.c)
	}
	g.mu.Unlock()
	for i, w := range round {
		w.err = errs[i]
		close(w.done)
	}
}

// timed keeps the smoothed latency of a round.
func (g *Grouper) timed(f func() error) error {
	start := clock.Now()
	err := f()
	took := clock.Since(start)
	g.mu.Lock()
	g.latency += (took - g.latency) / 8
	g.mu.Unlock()
	return err
}

// Apart begins a round in which no two members share a row, unless their verb
// adds up.
func Apart() func(Command) bool {
	taken := make(map[Key]bool)
	return func(c Command) bool {
		if c.Decl().Commutative {
			return true
		}
		keys := c.Keys()
		for _, k := range keys {
			if taken[k] {
				return false
			}
		}
		for _, k := range keys {
			taken[k] = true
		}
		return true
	}
}
