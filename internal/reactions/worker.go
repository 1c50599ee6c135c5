package reactions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Handler is the code of a reaction.
type Handler struct {
	Definition
	// Workspace is the only one that it is served in; "" is every one where it is
	// registered in this way.
	Workspace string
	// Kind is that of the handler that the definition names, where it names one: it is
	// served where the handler is of this kind.
	Kind string
	// Workspaces are where it is registered when a program starts.
	Workspaces []string
	// Body handles one event. Its context ends when the hold is lost.
	Body func(context.Context, *Delivery) error
	// Timeout is how long the body may take for one event.
	Timeout time.Duration
	// Every has the body given every event of the streams, whatever their names:
	// the definition's names then only say what is marked.
	Every bool
	// Ready says whether it has room for more; nil is always. While it has none,
	// nothing is taken for it. It is asked often, and must not wait.
	Ready func() bool

	pattern *regexp.Regexp // of the streams, nil for every one
}

// Delivery is one event in the hands of a reaction.
type Delivery struct {
	Event   events.Event
	Lease   *Lease
	Attempt int
	// Options, where the body sets them, are those that a failure is counted by: a
	// body may know them better than the one who serves it in all workspaces.
	Options *Options

	commits []func(context.Context, *store.Tx) error
}

// Commit adds what is written with the acknowledgement of the event, in its
// transaction. It may be run again.
func (d *Delivery) Commit(f func(context.Context, *store.Tx) error) { d.commits = append(d.commits, f) }

// Apply writes what is written with the acknowledgement.
func (d *Delivery) Apply(ctx context.Context, tx *store.Tx) error {
	for _, f := range d.commits {
		if err := f(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// Snoozed is what a body returns to have its event delivered again after a while,
// without a failure.
type Snoozed struct{ After time.Duration }

func (l *Snoozed) Error() string { return fmt.Sprintf("deferred for %s", l.After) }

// TraceEvent tells what became of a stream in a worker's hands.
type TraceEvent struct {
	What                        string // claimed, acked, failed, deferred, blocked, skipped, lost
	Workspace, Reaction, Stream string
	Version                     int64 // the watermark
	Error                       string
}

// Worker serves the reactions of a program: one for all of them, so that one
// poll serves all.
//
// A fetcher takes many streams at a time and reads what comes next on them in
// one statement; their events are handled in order, several streams at once;
// what is done is acknowledged for as many streams as are ready, in one
// statement. What a worker had in hand that crashed is taken as one group, and one
// group at a time, which is halved after each further crash; each of its events is
// acknowledged by itself, so that what kills its worker shows.
//
// Reactions may be added and dropped while it runs. A lease stays with the handler
// that it was taken for, until it ends.
type Worker struct {
	Engine Engine
	Hub    *wake.Hub
	Log    *slog.Logger
	Name   string // the holder
	// MaxConcurrency is how many bodies run at once; workspaces share that. ByHandler has the reactions of each share too.
	MaxConcurrency int
	ByHandler      bool
	Trace          func(TraceEvent)
	// Idle has Run go on while there is nothing to serve, because reactions are
	// added later.
	Idle bool

	mu            sync.Mutex
	handlers      map[served]*Handler
	changed       bool          // the poller listens for others than these
	tuned         chan struct{} // tells who renews that they are others
	held          map[*Lease]*heldLease
	stuck         map[follows]bool // streams whose body here has not come back; whether they were left to others
	crashedLeases map[int16]int    // streams in hand on which a holder has crashed, by shard

	room    *lease.Capacity // for bodies
	lining  sync.Mutex
	line    map[lease.Share][]*Lease // who waits for room
	passed  bool                     // a look has passed over who waits
	bodies  sync.WaitGroup
	ends    chan ending
	batch   int // streams of one take
	rounds  map[int16]*round
	tallies sync.Map       // by [Tally]
	aside   sync.WaitGroup // ends that nobody waits for
}

// served names what is served: a reaction, in a workspace or in all.
type served struct{ workspace, name string }

// heldLease is a lease in hand, with how to tell its body that it is lost. since is
// when it was taken or, once its body has begun, when that began with the event
// at hand.
type heldLease struct {
	lost  func(error)
	begun bool
	since time.Time
}

type ending struct {
	End
	done chan outcome
}

type outcome struct {
	Ended
	err error
}

const (
	takeLimit = 128 // of one take
	readLimit = 100 // events of a stream, of one read
	ackLimit  = 256
	// defaultConcurrency is how many bodies run at once.
	defaultConcurrency = 16
)

// Add adds a reaction to serve.
func (w *Worker) Add(h *Handler) error {
	if h.Timeout <= 0 {
		h.Timeout = lease.Timeout
	}
	if h.Streams != "" {
		pattern, err := regexp.Compile(h.Streams)
		if err != nil {
			return fault.New(fault.Validation, "the pattern %q of streams is no regular expression (RE2): %s", h.Streams, err)
		}
		h.pattern = pattern
	}
	w.mu.Lock()
	key := served{h.Workspace, h.Name}
	if w.handlers[key] != nil {
		w.mu.Unlock()
		return fault.New(fault.Conflict, "two reactions are named %q", h.Name)
	}
	if w.handlers == nil {
		w.handlers = make(map[served]*Handler)
	}
	w.handlers[key] = h
	w.change()
	return nil
}

// Drop ends the serving of a reaction, which stays registered. Nothing more is taken
// for it; what is in hand is handled to its end.
func (w *Worker) Drop(workspace, name string) {
	w.mu.Lock()
	delete(w.handlers, served{workspace, name})
	w.change()
}

// change tells the loops that the reactions are others, and gives up mu. REQUIRES: mu
func (w *Worker) change() {
	w.changed = true
	if w.tuned != nil {
		select {
		case w.tuned <- struct{}{}:
		default: // it will look anyway
		}
	}
	w.mu.Unlock()
	if w.Hub != nil {
		w.Hub.Wake([]string{w.topic()})
	}
}

// topic is what the poller is woken by when its reactions are others.
func (w *Worker) topic() string { return "worker/" + w.Name }

// topics returns what the poller is woken by.
func (w *Worker) topics() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = false
	topics := []string{w.topic()}
	for key := range w.handlers {
		topics = append(topics, store.DueTopic(key.name))
	}
	return topics
}

// outdated says whether the poller listens for other reactions than there are.
func (w *Worker) outdated() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Serves says whether there is anything to serve.
func (w *Worker) Serves() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.handlers) > 0
}

// Follows says whether the program here serves a reaction as it is registered, in whatever workspace.
func (w *Worker) Follows(d *Definition) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.handlers[served{"", d.Name}]
	return h != nil && h.Same(d)
}

// Run serves until ctx ends, and then waits for the bodies that run.
func (w *Worker) Run(ctx context.Context) {
	if !w.Idle && !w.Serves() {
		return
	}
	w.rounds = make(map[int16]*round)
	w.mu.Lock()
	w.held, w.stuck, w.ends, w.tuned = make(map[*Lease]*heldLease), make(map[follows]bool), make(chan ending), make(chan struct{}, 1)
	w.crashedLeases = make(map[int16]int)
	w.mu.Unlock()
	ended, unheld := make(chan struct{}), make(chan struct{})
	var recording, renewing sync.WaitGroup
	recording.Go(func() { w.record(ended) })
	renewing.Go(func() { w.renew(unheld) })
	w.batch = w.maxConcurrency()
	w.line = make(map[lease.Share][]*Lease)
	w.room = lease.NewCapacity(w.maxConcurrency(), func() bool { return store.Alone(w.Engine) }, func() { w.Hub.WakeHere(w.topic()) })
	if w.ByHandler {
		w.room.ByHandler()
	}
	for ctx.Err() == nil {
		w.poll(ctx)
	}
	w.giveBack(w.leaveLine())
	w.bodies.Wait()
	close(unheld)
	renewing.Wait()
	w.aside.Wait()
	close(ended) // nobody ends anything any more
	recording.Wait()
}

// poll looks for something to do until ctx ends, or until the reactions are others.
// It ends between two looks: one that is broken off leaves holds behind.
func (w *Worker) poll(serving context.Context) {
	ctx, end := context.WithCancel(serving)
	defer end()
	p := wake.Poller{Hub: w.Hub, Topics: w.topics(), Log: w.Log, WorkKinds: w.needs, Poll: func(ctx context.Context) (bool, error) {
		if w.outdated() {
			end()
			return false, nil
		}
		return w.pollOnce(ctx, serving)
	}}
	p.Run(ctx)
}

// pollOnce takes what there is to do, as far as there is room, and hands it out.
func (w *Worker) pollOnce(ctx, serving context.Context) (found bool, err error) {
	shards, err := store.Shards(ctx, w.Engine)
	if err != nil {
		return false, err
	}
	for _, shard := range shards {
		yes, err := w.pollShard(ctx, serving, shard)
		found = found || yes
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

func (w *Worker) pollShard(ctx, serving context.Context, shard int16) (found bool, err error) {
	names := w.names()
	if len(names) == 0 {
		return false, nil
	}
	at := w.at(shard)
	turns, more, err := w.turns(ctx, at, shard, names)
	if err != nil {
		return false, err
	}
	defer func() { at.busy = found && err == nil }()
	if turns = w.inTurn(turns); len(turns) == 0 {
		return more, nil
	}
	marks, err := at.collector.Next(ctx, w.Engine, store.Partition{Shard: shard}, turns)
	if err != nil {
		return false, err
	}
	w.mu.Lock()
	suspects := w.batch
	for other, n := range w.crashedLeases {
		if other != shard && n > 0 { // a crash is to tell of one group, and the statement knows one shard
			suspects = 0
		}
	}
	w.mu.Unlock()
	wanted, workspaces := w.wanted(turns)
	if len(wanted) == 0 {
		return marks || more, nil
	}
	leases, err := w.take(ctx, TakeArgs{Reactions: wanted, Holder: w.Name, Limit: w.batch, Share: (w.batch-1)/workspaces + 1, Crashed: suspects, All: true, Shard: shard})
	if err != nil || len(leases) == 0 {
		return marks || more, err
	}
	leases, err = w.fill(ctx, w.unwanted(w.leave(w.heldLease(leases))))
	defer w.adapt(clock.Now())
	w.enter(leases)
	for w.begins(serving); w.waits() && w.room.Left() == 0 && w.room.Wait(ctx) == nil; { // those who still wait then have their share
		w.begins(serving)
	}
	return true, err
}

// take finishes also when the worker stops meanwhile: what was taken for nobody would stay
// held until it runs out.
func (w *Worker) take(ctx context.Context, a TakeArgs) ([]*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordPatience)
	defer cancel()
	return Take(ctx, w.Engine, a)
}

// round is what the looks at one shard remember of each other. Only the poller
// looks.
type round struct {
	turns     lease.Round
	collector Collector
	busy      bool   // the last look found something
	only      string // a workspace in which it did
}

func (w *Worker) at(shard int16) *round {
	if w.rounds[shard] == nil {
		w.rounds[shard] = new(round)
	}
	return w.rounds[shard]
}

// adapt makes takes larger where bodies are fast, and smaller where they are
// slow: what one node has in hand, no other can do.
func (w *Worker) adapt(begun time.Time) {
	switch took := clock.Since(begun); {
	case took < 100*time.Millisecond:
		w.batch = min(2*w.batch, takeLimit)
	case took > time.Second:
		w.batch = max(w.batch/2, w.maxConcurrency())
	}
}

func (w *Worker) maxConcurrency() int {
	if w.MaxConcurrency > 0 {
		return w.MaxConcurrency
	}
	return defaultConcurrency
}

// names are those of the reactions that are served and have room.
func (w *Worker) names() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, h := range w.handlers {
		if h.Ready == nil || h.Ready() {
			names = append(names, key.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// wanted returns what is to be taken for turns, and of how many workspaces that is.
func (w *Worker) wanted(turns []lease.Turn) (wanted []Wanted, workspaces int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := make(map[string]bool)
	for _, t := range turns {
		h := w.by(t.Workspace, t.Name)
		if h == nil || h.Ready != nil && !h.Ready() {
			continue
		}
		x := Wanted{Name: t.Name, Lease: h.Lease, As: &h.Definition, Workspace: t.Workspace}
		if h.Kind != "" {
			x.Handler, x.Kind = h.Options.Handler, h.Kind
		}
		wanted = append(wanted, x)
		seen[t.Workspace] = true
	}
	return wanted, len(seen)
}

// by is the handler that serves a reaction in a workspace. REQUIRES: mu
func (w *Worker) by(workspace, reaction string) *Handler {
	if h := w.handlers[served{workspace, reaction}]; h != nil {
		return h
	}
	return w.handlers[served{name: reaction}]
}

// needs are the reactions that are served and have room.
func (w *Worker) needs() []wake.WorkKind { return wake.WorkKinds(wake.Reaction, w.names()...) }

func (w *Worker) handler(l *Lease) *Handler { return l.by }

// heldLease begins to keep leases. Those of a reaction that was dropped meanwhile are
// given back.
func (w *Worker) heldLease(leases []*Lease) []*Lease {
	var dropped []*Lease
	w.mu.Lock()
	kept := slices.DeleteFunc(leases, func(l *Lease) bool {
		if l.by = w.by(l.Workspace, l.Reaction); l.by == nil {
			dropped = append(dropped, l)
			return true
		}
		w.held[l] = &heldLease{since: clock.Now()}
		if l.Group > 0 {
			w.crashedLeases[l.Shard]++
		}
		w.trace("claimed", l, l.Watermark, nil)
		return false
	})
	w.mu.Unlock()
	w.giveBack(dropped)
	return kept
}

// leave leaves to other nodes, for a while and once, streams on which a body of
// this node hangs: it would hang again.
func (w *Worker) leave(leases []*Lease) []*Lease {
	var left []*Lease
	w.mu.Lock()
	kept := slices.DeleteFunc(leases, func(l *Lease) bool {
		was, hangs := w.stuck[l.stream()]
		if !hangs || was {
			return false
		}
		w.stuck[l.stream()] = true
		left = append(left, l)
		return true
	})
	w.mu.Unlock()
	for _, l := range left {
		w.end(l, End{Lease: l, Done: l.Watermark, Unfinished: true, Delay: 2 * w.handler(l).Lease})
	}
	return kept
}

// unwanted passes over streams that a reaction followed before it was narrowed.
func (w *Worker) unwanted(leases []*Lease) []*Lease {
	return slices.DeleteFunc(leases, func(l *Lease) bool {
		if p := l.by.pattern; p == nil || p.MatchString(l.Stream) {
			return false
		}
		w.end(l, End{Lease: l, Done: l.Due})
		return true
	})
}

// stream is the row of a lease, whatever its epoch.
func (l *Lease) stream() follows { return follows{l.Workspace, l.Reaction, l.Stream, 0} }

// letGo ends the keeping of a lease.
func (w *Worker) letGo(l *Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held[l] == nil {
		return
	}
	delete(w.held, l)
	if l.Group > 0 {
		w.crashedLeases[l.Shard]--
	}
}

// fill reads the events of leases. Those of a read that fails are given back.
func (w *Worker) fill(ctx context.Context, leases []*Lease) (filled []*Lease, err error) {
	bySource := make(map[store.EventTable][]*Lease)
	for _, l := range leases {
		source := w.handler(l).Source()
		bySource[source] = append(bySource[source], l)
	}
	for source, some := range bySource {
		failed := LoadEvents(ctx, w.Engine, source, some, func(l *Lease) []string { return w.handler(l).names() }, readLimit)
		if failed != nil {
			err = errors.Join(err, failed)
			w.giveBack(some)
			continue
		}
		filled = append(filled, some...)
	}
	return filled, err
}

// names are the events that a reaction wants, none for all.
func (h *Handler) names() []string {
	if h.Every || slices.Contains(h.Events, "*") {
		return nil
	}
	return h.Events
}

// giveBack releases leases that were not worked on, all at once. Where that fails
// they run out by themselves.
func (w *Worker) giveBack(leases []*Lease) {
	byShard := make(map[int16][]End)
	for _, l := range leases {
		byShard[l.Shard] = append(byShard[l.Shard], End{Lease: l, Done: l.Watermark, Unfinished: true})
	}
	for _, ends := range byShard {
		ctx, cancel := context.WithTimeout(context.Background(), recordPatience)
		_, err := ackBy(ctx, w.Engine, ackVerb, ends) // and waits for who has a row at this moment
		cancel()
		if err != nil {
			w.Log.Warn("streams could not be given back, and will run out", "streams", len(ends), "error", err)
		}
	}
	for _, l := range leases {
		w.letGo(l)
	}
}

// trace leaves a crumb: in the log, and with whoever asked for it.
func (w *Worker) trace(what string, l *Lease, version int64, err error) {
	w.Log.Debug(what, "workspace", l.Workspace, "reaction", l.Reaction, "stream", l.Stream, "version", version, "epoch", l.Epoch)
	if w.Trace == nil {
		return
	}
	c := TraceEvent{What: what, Workspace: l.Workspace, Reaction: l.Reaction, Stream: l.Stream, Version: version}
	if err != nil {
		c.Error = err.Error()
	}
	w.Trace(c)
}
