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

// ErrAlone is returned for a member of a group that could not be served without delaying the others. The
// member's caller then runs it by itself.
var ErrAlone = errors.New("the command must run alone")

// Rounds is an adapter's implementation of serving commands for a [Grouper]. In this package, a round is the execution
// of one group, and a slot is the right to run one round or one single command.
type Rounds struct {
	// Queue returns the queue of a command: only members of one queue share a round. A command with queue "" is
	// never grouped.
	Queue func(Command) string
	// Fits begins a round. The function it returns decides for one command after the other whether it may join the
	// round.
	Fits func() func(Command) bool
	// Exclusive forbids rounds in flight to share a row: the second would find it locked, and its members would all
	// have to run by themselves.
	Exclusive bool
	// Most is the maximum number of members of a round.
	Most int
	// Lone serves a single caller in a slot when no other caller waits. It may return [ErrAlone].
	Lone func(context.Context, Command) error
	// Acquire gets the connection of a round before members are chosen: until then each caller can still withdraw.
	Acquire func() (with any, release func(), err error)
	// Serve runs a round and returns each member's error; nil means that the member has its result, applied or
	// refused. It does not use the callers' contexts.
	Serve func(with any, members []Command) []error
	// Alone runs a command outside the slots, where it may wait for a lock.
	Alone func(context.Context, Command) error
	// Slots returns how many rounds may run at once, given the latency of a round.
	Slots func(time.Duration) int
}

// Grouper lets callers share a round trip and a commit.
//
// A caller that finds a free slot is served immediately and by itself, so there is no wait without contention.
// A caller that finds none waits in its queue, and the next slot that becomes free serves all waiting callers
// that fit together. Groups grow with the load, without a timer.
//
// Guarantees:
//
//   - Each caller gets its own result and its own error. A problem of one member does not affect another: a
//     round that cannot serve a member returns [ErrAlone] for it, and the member's own goroutine runs it
//     outside the slots.
//   - A caller whose context ends while it waits withdraws and is not applied. Once its round has begun it
//     waits for the result; the adapter limits that time.
//   - A slot is never occupied while waiting for another transaction's lock: rounds skip locked rows, and a
//     single caller waits only briefly.
//
// Rejected: one goroutine that serves all callers (a goroutine switch for every uncontended call, and one slow
// statement blocks everything); a timer that waits for more members (an uncontended caller pays for it).
type Grouper struct {
	Rounds

	mu sync.Mutex
	// INVARIANT: waiting is empty or busy > 0.
	busy     int           // occupied slots
	latency  time.Duration // smoothed latency of a round
	waiting  []string      // queues with callers, oldest first
	queues   map[string][]*call
	reserved map[Key]bool // rows of rounds in flight, if rounds are exclusive
}

// call is the command of a waiting caller.
type call struct {
	c     Command
	taken bool // taken by a round; guarded by Grouper.mu
	err   error
	done  chan struct{}
}

// NewGrouper returns a grouper that serves through r.
func NewGrouper(r Rounds) *Grouper {
	return &Grouper{Rounds: r, queues: make(map[string][]*call), reserved: make(map[Key]bool)}
}

// Do runs a command and commits it, by itself or grouped with others.
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
		return g.orAlone(ctx, c, g.single(ctx, c))
	}
	return g.orAlone(ctx, c, g.wait(ctx, queue, w))
}

// single serves a caller in the slot it occupies, and passes the slot on even if the caller's goroutine panics.
func (g *Grouper) single(ctx context.Context, c Command) error {
	defer g.leave(c)
	return g.timed(func() error { return g.Lone(ctx, c) })
}

func (g *Grouper) orAlone(ctx context.Context, c Command, err error) error {
	if errors.Is(err, ErrAlone) {
		return g.Alone(ctx, c)
	}
	return err
}

// enter takes a free slot or joins the queue.
func (g *Grouper) enter(queue string, c Command) (w *call, free bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy < g.Slots(g.latency) && len(g.waiting) == 0 && g.apart(c) {
		g.reserveRows(c)
		g.busy++
		return nil, true
	}
	w = &call{c: c, done: make(chan struct{})}
	if len(g.queues[queue]) == 0 {
		g.waiting = append(g.waiting, queue)
	}
	g.queues[queue] = append(g.queues[queue], w)
	if g.busy < g.Slots(g.latency) { // the number of slots has grown
		g.busy++
		go g.drain()
	}
	return w, false
}

// wait waits for the round that serves a caller. A caller whose context ends before its round withdraws from
// the queue. Once a round has taken it, it stays: the round writes the result into its command, and the adapter
// limits that time.
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

// withdraw removes a caller from its queue, unless a round has taken it.
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

// leave passes the slot of a single caller to the waiting ones, or frees it.
func (g *Grouper) leave(c Command) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.freeRows(c)
	if len(g.waiting) > 0 {
		go g.drain()
		return
	}
	g.busy--
}

// drain serves rounds in one slot until no caller waits.
func (g *Grouper) drain() {
	for g.round() {
		runtime.Gosched() // callers just served may return and share the next round
	}
}

// round serves one round, and reports whether the slot is still occupied.
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
		if err != nil { // each caller waits with its own context
			return slices.Repeat([]error{ErrAlone}, len(members))
		}
		return g.Serve(with, members)
	})
	return true
}

// next takes callers of the oldest queue that fit together, or frees the slot.
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
	// All waiting callers need rows of rounds in flight; the slots of those rounds serve them next.
	g.busy--
	return nil
}

// take takes the callers of the oldest queue that fit, and moves the rest behind the other queues.
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

// apart reports whether the command shares no row with a round in flight. REQUIRES: mu
func (g *Grouper) apart(c Command) bool {
	if !g.Exclusive || len(g.reserved) == 0 {
		return true
	}
	return !slices.ContainsFunc(c.Keys(), func(k Key) bool { return g.reserved[k] })
}

// reserveRows records the rows of a command that is about to run. REQUIRES: mu
func (g *Grouper) reserveRows(c Command) {
	if g.Exclusive {
		for _, k := range c.Keys() {
			g.reserved[k] = true
		}
	}
}

// freeRows removes the rows of a command. REQUIRES: mu
func (g *Grouper) freeRows(c Command) {
	if g.Exclusive {
		for _, k := range c.Keys() {
			delete(g.reserved, k)
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
		g.reserveRows(w.c)
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
		g.freeRows(w.c)
	}
	g.mu.Unlock()
	for i, w := range round {
		w.err = errs[i]
		close(w.done)
	}
}

// timed updates the smoothed latency of a round.
func (g *Grouper) timed(f func() error) error {
	start := clock.Now()
	err := f()
	took := clock.Since(start)
	g.mu.Lock()
	g.latency += (took - g.latency) / 8
	g.mu.Unlock()
	return err
}

// Apart begins a round in which no two members share a row, unless their verb is commutative. A serial command is
// the only member of its round. Second commands of pairs never share a row.
func Apart() func(Command) bool {
	taken := make(map[Key]bool)
	first := true
	return func(c Command) bool {
		keys := c.Keys()
		if c.Decl().Commutative {
			p, pair := c.(*Pair)
			if !pair {
				return true
			}
			keys = p.Probe.Keys()
		}
		if c.Decl().Serial {
			defer func() { first = false }()
			return first
		}
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
