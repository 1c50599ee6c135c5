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
	"github.com/holdfast-go/holdfast/internal/meter"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Handler is the code that serves a reaction.
type Handler struct {
	Definition
	// Workspace is the only workspace to serve. "" serves every workspace where the
	// same definition is registered.
	Workspace string
	// Kind is the kind of the definition's named handler. The reaction is served
	// only where the registered handler has this kind.
	Kind string
	// Workspaces are the workspaces to register the reaction in when a program starts.
	Workspaces []string
	// Body handles one event. Its context ends when the lease is lost.
	Body func(context.Context, *Delivery) error
	// Timeout is the limit for handling one event.
	Timeout time.Duration
	// Every delivers every event of the streams to the body. The definition's event
	// names then only select the events that get a due notice.
	Every bool
	// Ready reports whether the handler has capacity; nil means always. Nothing is
	// taken while it returns false. It is called often and must not block.
	Ready func() bool

	pattern *regexp.Regexp // of the streams, nil for every stream
}

// Delivery is one event that is delivered to a reaction.
type Delivery struct {
	Event   events.Event
	Lease   *Lease
	Attempt int
	// Options replace the handler's options when a failure is counted. A body that
	// serves all workspaces sets the options of its own workspace.
	Options *Options

	commits []func(context.Context, *store.Tx) error
}

// Commit adds writes to the transaction that acknowledges the event. f may run
// more than once.
func (d *Delivery) Commit(f func(context.Context, *store.Tx) error) { d.commits = append(d.commits, f) }

// Apply runs the writes that were added with [Delivery.Commit].
func (d *Delivery) Apply(ctx context.Context, tx *store.Tx) error {
	for _, f := range d.commits {
		if err := f(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// Snoozed is the error that a body returns to have its event delivered again
// after a pause, without counting a failure.
type Snoozed struct{ After time.Duration }

// Error returns the duration of the deferral.
func (l *Snoozed) Error() string { return fmt.Sprintf("deferred for %s", l.After) }

// TraceEvent says what happened to a lease of a worker.
type TraceEvent struct {
	What                        string // claimed, acked, failed, deferred, blocked, skipped, lost
	Workspace, Reaction, Stream string
	Version                     int64 // the watermark
	Error                       string
}

// Worker serves the reactions of a program. It is a loop in a node, not a program
// that claims tasks over HTTP. One worker serves all reactions, so that one poll
// serves all.
//
// A poll takes many streams at a time and reads their next events in one
// statement. The events of a stream are handled in order, several streams at
// once. One statement acknowledges all streams that are ready. The streams that a
// crashed holder had are taken as one group, one group at a time; the group is
// halved after each further crash. Each event of such a stream is acknowledged on
// its own, so that the event that crashes the worker can be identified.
//
// Reactions may be added and dropped while the worker runs. A lease stays with
// the handler that it was taken for until it ends.
type Worker struct {
	Engine Engine
	Hub    *wake.Hub
	Log    *slog.Logger
	Name   string // the holder
	// MaxConcurrency is the number of bodies that run at once, shared by the
	// workspaces. With ByHandler the reactions of a workspace get shares too.
	MaxConcurrency int
	ByHandler      bool
	Tallies        *Tallies
	Trace          func(TraceEvent)
	// Idle keeps Run running while there are no handlers, because reactions are
	// added later.
	Idle bool

	mu              sync.Mutex
	handlers        map[served]*Handler
	changed         bool          // the poller still waits on the topics of an older set
	handlersChanged chan struct{} // signals the renewal loop that handlers changed
	held            map[*Lease]*heldLease
	stuck           map[follows]bool // streams whose body on this node has not returned; true once the stream was left to other nodes
	crashedLeases   map[int16]int    // held streams on which a holder crashed, by shard

	room          *lease.Capacity // for bodies
	queueMu       sync.Mutex
	queue         map[lease.Share][]*Lease // leases that wait for capacity
	skippedQueued bool                     // a poll excluded the workspaces in the queue
	bodies        sync.WaitGroup
	ends          chan ending
	batch         int                  // streams of one take
	polls         map[int16]*pollState // by shard
	detached      sync.WaitGroup       // ends recorded in the background
}

// served is the key of a handler: a reaction in one workspace, or in all ("").
type served struct{ workspace, name string }

// heldLease is a lease that this worker holds. lost cancels its body. since is
// the time of the take or, once the body has begun, the start of the current
// event.
type heldLease struct {
	lost  func(error)
	begun bool
	since time.Time
}

// Held returns how many leases the worker renews.
func (w *Worker) Held() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.held)
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
	takeLimit          = 128 // streams per take
	readLimit          = 100 // events per stream and read
	ackLimit           = 256
	defaultConcurrency = 16
)

// Add starts serving a reaction.
func (w *Worker) Add(h *Handler) error {
	if h.Timeout <= 0 {
		h.Timeout = lease.Timeout
	}
	if h.Streams != "" {
		pattern, err := regexp.Compile(h.Streams)
		if err != nil {
			return fault.New(fault.Validation, "stream pattern %q is not a valid regular expression (RE2): %s", h.Streams, err)
		}
		h.pattern = pattern
	}
	w.mu.Lock()
	key := served{h.Workspace, h.Name}
	if w.handlers[key] != nil {
		w.mu.Unlock()
		return fault.New(fault.Conflict, "reaction %q is already served by this engine: choose another name", h.Name)
	}
	if w.handlers == nil {
		w.handlers = make(map[served]*Handler)
	}
	w.handlers[key] = h
	w.change()
	return nil
}

// RegisterIn registers the reactions of the program in the context's workspace too. It is for tests that use many
// workspaces.
func (w *Worker) RegisterIn(ctx context.Context) error {
	w.mu.Lock()
	var own []*Handler
	for _, h := range w.handlers {
		if len(h.Workspaces) > 0 {
			own = append(own, h)
		}
	}
	w.mu.Unlock()
	for _, h := range own {
		if _, err := Register(ctx, w.Engine, h.Definition); err != nil {
			return err
		}
	}
	return nil
}

// Drop stops serving a reaction; the reaction stays registered. Nothing more is
// taken for it. Leases in flight run to their end.
func (w *Worker) Drop(workspace, name string) {
	w.mu.Lock()
	delete(w.handlers, served{workspace, name})
	w.change()
}

// change signals the loops that the handlers changed, and unlocks mu. REQUIRES: mu
func (w *Worker) change() {
	w.changed = true
	if w.handlersChanged != nil {
		select {
		case w.handlersChanged <- struct{}{}:
		default: // a signal is pending
		}
	}
	w.mu.Unlock()
	if w.Hub != nil {
		w.Hub.Wake([]string{w.topic()})
	}
}

// topic returns the topic that wakes the poller when the handlers change.
func (w *Worker) topic() string { return "worker/" + w.Name }

// topics returns the topics that wake the poller.
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

// outdated reports whether the handlers changed since the poller got its topics.
func (w *Worker) outdated() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// Serves reports whether the worker has handlers.
func (w *Worker) Serves() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.handlers) > 0
}

// Follows reports whether this program serves the reaction with the same
// selection in all workspaces.
func (w *Worker) Follows(d *Definition) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.handlers[served{"", d.Name}]
	return h != nil && h.Same(d)
}

// init sets the state of a worker that has no lease yet.
func (w *Worker) init() {
	w.polls, w.batch = make(map[int16]*pollState), w.maxConcurrency()
	w.mu.Lock()
	w.held, w.stuck, w.crashedLeases = make(map[*Lease]*heldLease), make(map[follows]bool), make(map[int16]int)
	w.mu.Unlock()
	w.queueMu.Lock()
	w.queue = make(map[lease.Share][]*Lease)
	w.queueMu.Unlock()
}

// Run serves until ctx ends, and then waits for the running bodies.
func (w *Worker) Run(ctx context.Context) {
	if !w.Idle && !w.Serves() {
		return
	}
	w.init()
	w.mu.Lock()
	w.ends, w.handlersChanged = make(chan ending), make(chan struct{}, 1)
	w.mu.Unlock()
	ended, unheld := make(chan struct{}), make(chan struct{})
	var recording, renewing sync.WaitGroup
	recording.Go(func() { w.record(ended) })
	renewing.Go(func() { w.renew(unheld) })
	// The only workspace of a database may use the whole capacity.
	w.room = lease.NewCapacity(w.maxConcurrency(), func() bool { return store.SingleWorkspace(w.Engine) }, func() { w.Hub.WakeHere(w.topic()) })
	if w.ByHandler {
		w.room.ByHandler()
	}
	for ctx.Err() == nil {
		w.poll(ctx)
	}
	w.release(w.drainQueue())
	w.bodies.Wait()
	close(unheld)
	renewing.Wait()
	w.detached.Wait()
	close(ended) // after the last possible end
	recording.Wait()
}

// poll polls until ctx ends or the handlers change. It stops only between two
// polls: an interrupted poll would leave leases behind.
func (w *Worker) poll(serving context.Context) {
	ctx, end := context.WithCancel(serving)
	defer end()
	p := wake.Poller{Hub: w.Hub, Topics: w.topics(), Log: w.Log, WorkKinds: w.WorkKinds, Poll: func(ctx context.Context) (bool, error) {
		if w.outdated() {
			end()
			return false, nil
		}
		return w.pollOnce(ctx, serving)
	}}
	p.Run(ctx)
}

// pollOnce takes due streams on all shards, as far as there is capacity, and
// starts their bodies. ctx is that of the poll, serving that of the bodies.
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
	at := w.pollStateOf(shard)
	turns, more, err := w.turns(ctx, at, shard, names)
	if err != nil {
		return false, err
	}
	defer func() { at.busy = found && err == nil }()
	if turns = w.inTurn(turns); len(turns) == 0 {
		return more, nil
	}
	leases, collectedAny, err := w.takeTurns(ctx, at, shard, turns)
	if len(leases) == 0 {
		return (collectedAny || more) && err == nil, err
	}
	defer w.adapt(clock.Now())
	w.enqueue(leases)
	for w.startQueued(serving); w.hasQueued() && w.room.Left() == 0 && w.room.Wait(ctx) == nil; { // after that, queued leases wait only because their share is used up
		w.startQueued(serving)
	}
	return true, err
}

// Step takes one due stream of a workspace and handles its events before it returns. It is for a worker that does not
// run.
func (w *Worker) Step(ctx context.Context, at store.Partition) (found bool, err error) {
	w.init()
	w.batch = 1
	var turns []lease.Turn
	for _, name := range w.names() {
		turns = append(turns, lease.Turn{Name: name, Workspace: at.Workspace})
	}
	leases, collected, err := w.takeTurns(ctx, new(pollState), at.Shard, turns)
	for _, l := range leases {
		w.serve(ctx, l)
	}
	return collected || len(leases) > 0, err
}

// takeTurns collects the due notices of turns and takes due streams, with their events.
func (w *Worker) takeTurns(ctx context.Context, at *pollState, shard int16, turns []lease.Turn) (leases []*Lease, collectedAny bool, err error) {
	if collectedAny, err = at.collector.Next(ctx, w.Engine, store.Partition{Shard: shard}, turns); err != nil {
		return nil, false, err
	}
	w.mu.Lock()
	crashed := w.batch
	for other, n := range w.crashedLeases {
		if other != shard && n > 0 { // a crash must point to one group, and the statement sees only one shard
			crashed = 0
		}
	}
	w.mu.Unlock()
	wanted, workspaces := w.wanted(turns)
	if len(wanted) == 0 {
		return nil, collectedAny, nil
	}
	leases, err = w.take(ctx, TakeArgs{Reactions: wanted, Holder: w.Name, Limit: w.batch, Share: (w.batch-1)/workspaces + 1, Crashed: crashed, All: true, Shard: shard})
	if err != nil || len(leases) == 0 {
		return nil, collectedAny, err
	}
	leases, err = w.fill(ctx, w.skipUnmatched(w.deferStuck(w.track(leases))))
	return leases, true, err
}

// take calls [Take] and finishes even if the worker stops meanwhile: streams of
// an interrupted take would stay leased until they expire.
func (w *Worker) take(ctx context.Context, a TakeArgs) ([]*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return Take(ctx, w.Engine, a)
}

// pollState is the state that the polls of one shard share. Only the poller uses it.
type pollState struct {
	turns     lease.Round
	collector Collector
	busy      bool   // the last poll found work
	only      string // the workspace of the first turn of the last query, or ""; used only while there is a single workspace
}

func (w *Worker) pollStateOf(shard int16) *pollState {
	if w.polls[shard] == nil {
		w.polls[shard] = new(pollState)
	}
	return w.polls[shard]
}

// adapt makes takes larger if bodies are fast, and smaller if they are slow:
// streams that one node holds are not available to other nodes.
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

// names returns the served reactions that have capacity.
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

// wanted returns the reactions to take for turns, and the number of their workspaces.
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

// by returns the handler of a reaction in a workspace. REQUIRES: mu
func (w *Worker) by(workspace, reaction string) *Handler {
	if h := w.handlers[served{workspace, reaction}]; h != nil {
		return h
	}
	return w.handlers[served{name: reaction}]
}

// WorkKinds returns the work that the poller waits for.
func (w *Worker) WorkKinds() []wake.WorkKind { return wake.WorkKinds(wake.Reaction, w.names()...) }

func (w *Worker) handler(l *Lease) *Handler { return l.by }

// track starts the renewal of leases. It releases those of a reaction that was
// dropped meanwhile.
func (w *Worker) track(leases []*Lease) []*Lease {
	var dropped []*Lease
	w.mu.Lock()
	tracked := slices.DeleteFunc(leases, func(l *Lease) bool {
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
	w.release(dropped)
	return tracked
}

// deferStuck releases streams on which a body of this node hangs, because they
// would probably hang here again. Such a stream is due again, for every node, after
// twice its lease duration. This is done once per hang: if this node then takes the
// stream again, it serves it.
func (w *Worker) deferStuck(leases []*Lease) []*Lease {
	var left []*Lease
	w.mu.Lock()
	tracked := slices.DeleteFunc(leases, func(l *Lease) bool {
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
	return tracked
}

// skipUnmatched acknowledges streams that the reaction's pattern no longer matches.
func (w *Worker) skipUnmatched(leases []*Lease) []*Lease {
	return slices.DeleteFunc(leases, func(l *Lease) bool {
		if p := l.by.pattern; p == nil || p.MatchString(l.Stream) {
			return false
		}
		w.end(l, End{Lease: l, Done: l.Due})
		return true
	})
}

// stream returns the row of a lease without its epoch.
func (l *Lease) stream() follows { return follows{l.Workspace, l.Reaction, l.Stream, 0} }

// untrack stops the renewal of a lease.
func (w *Worker) untrack(l *Lease) {
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

// fill reads the events of leases, and releases the leases whose read failed.
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
			w.release(some)
			continue
		}
		for _, l := range some {
			if len(l.Events) > 0 && l.Attempt() == 1 {
				meter.Of(w.Engine).Kind(Kind(l.Reaction)).Waited(l.Events[0].At, l.Until, w.handler(l).Lease)
			}
		}
		filled = append(filled, some...)
	}
	return filled, err
}

// names returns the names of the events to read, none for all.
func (h *Handler) names() []string {
	if h.Every || slices.Contains(h.Events, "*") {
		return nil
	}
	return h.Events
}

// release releases leases whose bodies did not begin. If that fails, they expire.
func (w *Worker) release(leases []*Lease) {
	byShard := make(map[int16][]End)
	for _, l := range leases {
		byShard[l.Shard] = append(byShard[l.Shard], End{Lease: l, Done: l.Watermark, Unfinished: true})
	}
	for _, ends := range byShard {
		ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
		_, err := ackBy(ctx, w.Engine, ackVerb, ends) // waits for row locks
		cancel()
		if err != nil {
			w.Log.Warn("failed to release leases; they will expire", "count", len(ends), "error", err)
		}
	}
	for _, l := range leases {
		w.untrack(l)
	}
}

// trace logs and counts what happened to a lease, and calls Trace.
func (w *Worker) trace(what string, l *Lease, version int64, err error) {
	w.Tallies.Trace(w.Log, what, l, version)
	if w.Trace == nil {
		return
	}
	c := TraceEvent{What: what, Workspace: l.Workspace, Reaction: l.Reaction, Stream: l.Stream, Version: version}
	if err != nil {
		c.Error = err.Error()
	}
	w.Trace(c)
}
