package reactions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Handler is the code of a reaction.
type Handler struct {
	Definition
	// Workspaces are where it is registered when a program starts.
	Workspaces []string
	// Body handles one event. Its context ends when the hold is lost.
	Body func(context.Context, *Delivery) error
	// Timeout is how long the body may take for one event.
	Timeout time.Duration
}

// Delivery is one event in the hands of a reaction.
type Delivery struct {
	Event   events.Event
	Lease   *Lease
	Attempt int

	commits []func(context.Context, *store.Tx) error
}

// Commit adds what is written with the acknowledgement of the event, in its
// transaction. It may be run again.
func (d *Delivery) Commit(f func(context.Context, *store.Tx) error) { d.commits = append(d.commits, f) }

// Later is what a body returns to have its event delivered again after a while,
// without a failure.
type Later struct{ After time.Duration }

func (l *Later) Error() string { return fmt.Sprintf("deferred for %s", l.After) }

// Crumb tells what became of a stream in a worker's hands.
type Crumb struct {
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
// statement. A stream on which somebody died is taken one at a time, and each of
// its events acknowledged by itself, so that what kills its worker shows.
type Worker struct {
	Engine   Engine
	Hub      *wake.Hub
	Log      *slog.Logger
	Name     string // the holder
	Parallel int    // bodies at once
	Trace    func(Crumb)

	mu       sync.Mutex
	handlers map[string]*Handler
	patterns map[string]*regexp.Regexp // of the handlers that have one
	held     map[*Lease]*grip
	stuck    map[follows]bool // streams whose body here has not come back; whether they were left to others
	suspects int              // streams in hand on which somebody has died

	shards  []int16
	learned time.Time
	ends    chan ending
	batch   int // streams of one take
	counts  sync.Map
	aside   sync.WaitGroup // ends that nobody waits for
}

// grip is a lease in hand, with how to tell its body that it is lost. since is
// when it was taken or, once its body has begun, when that began with the event
// at hand.
type grip struct {
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
	// defaultParallel is how many bodies run at once.
	defaultParallel = 16
)

// Add adds a reaction to serve. It must be called before Run.
func (w *Worker) Add(h *Handler) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.handlers == nil {
		w.handlers, w.patterns = make(map[string]*Handler), make(map[string]*regexp.Regexp)
	}
	if w.handlers[h.Name] != nil {
		return fault.New(fault.Conflict, "two reactions are named %q", h.Name)
	}
	if h.Timeout <= 0 {
		h.Timeout = hold.Timeout
	}
	w.handlers[h.Name] = h
	if h.Streams != "" {
		pattern, err := regexp.Compile(h.Streams)
		if err != nil {
			return fault.New(fault.Validation, "the pattern %q of streams is no regular expression (RE2): %s", h.Streams, err)
		}
		w.patterns[h.Name] = pattern
	}
	return nil
}

// Serves says whether there is anything to serve.
func (w *Worker) Serves() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.handlers) > 0
}

// Run serves until ctx ends, and then waits for the bodies that run.
func (w *Worker) Run(ctx context.Context) {
	if !w.Serves() {
		return
	}
	w.held, w.stuck, w.ends = make(map[*Lease]*grip), make(map[follows]bool), make(chan ending)
	ended, unheld := make(chan struct{}), make(chan struct{})
	var recording, renewing, bodies sync.WaitGroup
	recording.Go(func() { w.record(ended) })
	renewing.Go(func() { w.renew(unheld) })
	w.batch = w.parallel()
	work := make(chan *Lease)
	for range w.parallel() {
		bodies.Go(func() {
			for l := range work {
				w.serve(ctx, l)
			}
		})
	}
	var topics []string
	for name := range w.handlers {
		topics = append(topics, store.MarkTopic(name))
	}
	p := wake.Poller{Hub: w.Hub, Topics: topics, Log: w.Log, Look: func(ctx context.Context) (bool, error) { return w.look(ctx, work) }}
	p.Run(ctx)
	close(work)
	bodies.Wait()
	close(unheld)
	renewing.Wait()
	w.aside.Wait()
	close(ended) // nobody ends anything any more
	recording.Wait()
}

// look takes what there is to do, as far as there is room, and hands it out.
func (w *Worker) look(ctx context.Context, work chan<- *Lease) (found bool, err error) {
	if err := w.refresh(ctx); err != nil {
		return false, err
	}
	for _, shard := range w.shards {
		yes, err := w.lookAt(ctx, shard, work)
		found = found || yes
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

func (w *Worker) lookAt(ctx context.Context, shard int16, work chan<- *Lease) (found bool, err error) {
	names, wanted := w.wanted()
	if yes, err := Look(ctx, w.Engine, store.Place{Shard: shard}, names); err != nil || !yes {
		return false, err
	}
	marks, err := Gather(ctx, w.Engine, store.Place{Shard: shard}, names)
	if err != nil {
		return false, err
	}
	w.mu.Lock()
	suspects := 1 - min(1, w.suspects)
	w.mu.Unlock()
	leases, err := Take(ctx, w.Engine, TakeArgs{Reactions: wanted, Holder: w.Name, Limit: w.batch, Suspects: suspects, All: true, Shard: shard})
	if err != nil || len(leases) == 0 {
		return marks, err
	}
	w.grip(leases)
	leases, err = w.fill(ctx, w.unwanted(w.leave(leases)))
	defer w.adapt(clock.Now())
	for i, l := range leases {
		select {
		case work <- l:
		case <-ctx.Done():
			w.giveBack(leases[i:])
			return true, nil
		}
	}
	return true, err
}

// adapt makes takes larger where bodies are fast, and smaller where they are
// slow: what one node has in hand, no other can do.
func (w *Worker) adapt(begun time.Time) {
	switch took := clock.Since(begun); {
	case took < 100*time.Millisecond:
		w.batch = min(2*w.batch, takeLimit)
	case took > time.Second:
		w.batch = max(w.batch/2, w.parallel())
	}
}

func (w *Worker) parallel() int {
	if w.Parallel > 0 {
		return w.Parallel
	}
	return defaultParallel
}

// wanted returns the reactions that are served, by rising name.
func (w *Worker) wanted() (names []string, wanted []Wanted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.handlers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, n := range names {
		wanted = append(wanted, Wanted{n, w.handlers[n].Lease, &w.handlers[n].Definition})
	}
	return names, wanted
}

func (w *Worker) handler(l *Lease) *Handler {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handlers[l.Reaction]
}

// grip begins to keep leases.
func (w *Worker) grip(leases []*Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range leases {
		w.held[l] = &grip{since: clock.Now()}
		if l.Deaths > 0 {
			w.suspects++
		}
		w.trace("claimed", l, l.Watermark, nil)
	}
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
		if p := w.patterns[l.Reaction]; p == nil || p.MatchString(l.Stream) {
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
	if l.Deaths > 0 {
		w.suspects--
	}
}

// fill reads the events of leases. Those of a read that fails are given back.
func (w *Worker) fill(ctx context.Context, leases []*Lease) (filled []*Lease, err error) {
	bySource := make(map[store.Marks][]*Lease)
	for _, l := range leases {
		source := w.handler(l).Source()
		bySource[source] = append(bySource[source], l)
	}
	for source, some := range bySource {
		failed := Fill(ctx, w.Engine, source, some, func(l *Lease) []string { return w.handler(l).names() }, readLimit)
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
func (d *Definition) names() []string {
	if slices.Contains(d.Events, "*") {
		return nil
	}
	return d.Events
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
		_, err := Record(ctx, w.Engine, ends)
		cancel()
		if err != nil {
			w.Log.Warn("streams could not be given back, and will run out", "streams", len(ends), "error", err)
		}
	}
	for _, l := range leases {
		w.letGo(l)
	}
}

// refresh learns now and then which shards there are.
func (w *Worker) refresh(ctx context.Context) error {
	if w.shards != nil && clock.Since(w.learned) < 10*time.Second {
		return nil
	}
	shards, err := store.Shards(ctx, w.Engine)
	if err == nil {
		w.shards, w.learned = shards, clock.Now()
	}
	return err
}

// serve handles the events of a lease, one after the other.
func (w *Worker) serve(ctx context.Context, l *Lease) {
	h := w.handler(l)
	body, lose := context.WithCancelCause(store.InWorkspace(ctx, l.Workspace))
	defer lose(context.Canceled)
	defer w.unstuck(l)
	w.mu.Lock()
	g := w.held[l]
	if g != nil {
		g.lost = lose
	}
	w.mu.Unlock()
	if g == nil { // it was lost while it waited its turn
		return
	}
	done, failures, finished := l.Watermark, l.Failures, false
	careful := l.Deaths > 0 || l.Failures > 0
	for i := range l.Events {
		if body.Err() != nil {
			w.abandon(l, done, context.Cause(body))
			return
		}
		d := &Delivery{Event: l.Events[i], Lease: l, Attempt: 1}
		if i == 0 {
			d.Attempt = l.Attempt()
		}
		w.begin(l)
		err := w.run(body, h, d)
		if err == nil && (len(d.commits) > 0 || careful) {
			finished = i == len(l.Events)-1 && !l.Full
			err = w.commit(body, l, d, finished)
		}
		if err != nil {
			w.failed(body, h, l, d, done, failures, err)
			return
		}
		done, failures = d.Event.Version, 0
	}
	if finished { // it was acknowledged with its last event
		w.letGo(l)
		w.trace("acked", l, l.Handled(), nil)
		return
	}
	w.end(l, End{Lease: l, Done: l.Handled()})
}

// unstuck notes that a body has come back.
func (w *Worker) unstuck(l *Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.stuck, l.stream())
}

// begin notes that the body is about to work on an event.
func (w *Worker) begin(l *Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.held[l]; g != nil {
		g.begun, g.since = true, clock.Now()
	}
}

// run calls the body, for as long as it may take.
func (w *Worker) run(ctx context.Context, h *Handler, d *Delivery) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.Timeout, hold.ErrTimeout)
	defer cancel()
	defer w.recovered(d.Lease, d, &err)
	err = h.Body(ctx, d)
	if err != nil && errors.Is(context.Cause(ctx), hold.ErrTimeout) {
		err = hold.ErrTimeout
	}
	return err
}

// recovered makes an error of a panic.
func (w *Worker) recovered(l *Lease, d *Delivery, err *error) {
	if p := recover(); p != nil {
		w.Log.Error("a reaction panicked", "reaction", l.Reaction, "stream", l.Stream, "version", d.Event.Version,
			"panic", p, "stack", string(debug.Stack()))
		*err = fmt.Errorf("panic: %v", p)
	}
}

// commit acknowledges one event with what its body wrote, in one transaction, and
// keeps the hold unless it was the last.
func (w *Worker) commit(ctx context.Context, l *Lease, d *Delivery, last bool) (err error) {
	defer w.recovered(l, d, &err)
	e := End{Lease: l, Done: d.Event.Version, Keep: !last, Now: len(d.commits) > 0}
	if last {
		e.Done = l.Handled()
	}
	if len(d.commits) == 0 {
		_, err := RecordOne(ctx, w.Engine, e)
		return err
	}
	return w.Engine.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, f := range d.commits {
			if err := f(ctx, tx); err != nil {
				return err
			}
		}
		_, err := RecordOne(ctx, tx, e)
		return err
	})
}

// failed ends a lease whose event failed.
func (w *Worker) failed(ctx context.Context, h *Handler, l *Lease, d *Delivery, done int64, failures int, err error) {
	var later *Later
	switch cause := context.Cause(ctx); {
	case cause != nil:
		w.abandon(l, done, cause)
	case fault.CodeOf(err) == fault.LeaseLost:
		w.abandon(l, done, hold.ErrLost)
	case errors.Is(err, hold.ErrTimeout):
		w.timedOut(l, done)
	case fault.CodeOf(err) == fault.Unavailable || fault.CodeOf(err) == fault.OutcomeUnknown:
		// the database is gone for a moment: that says nothing of the event
		w.Log.Warn("a reaction is tried again, because the database did not answer", "reaction", h.Name, "stream", l.Stream, "error", err)
		w.end(l, End{Lease: l, Done: done, Unfinished: true, Delay: h.Backoff.Pause(1)})
	case errors.As(err, &later):
		w.trace("deferred", l, done, nil)
		w.end(l, End{Lease: l, Done: done, Unfinished: true, Delay: later.After})
	default:
		w.count(h, l, d.Event.Version, done, failures+1, err)
	}
}

// timedOut lets a hold run out whose body took longer than it may: that is no
// failure, which the body would have told of, but a death. What was done before
// is kept.
func (w *Worker) timedOut(l *Lease, done int64) {
	w.Log.Warn("a reaction took longer than it may", "reaction", l.Reaction, "stream", l.Stream)
	if done > l.Watermark {
		w.end(l, End{Lease: l, Done: done, Keep: true})
	}
	w.letGo(l)
	w.trace("lost", l, done, hold.ErrTimeout)
}

// count counts a failure: the event is tried again after a while, or has failed
// for good.
func (w *Worker) count(h *Handler, l *Lease, version, done int64, failures int, err error) {
	message := err.Error()
	if message == "" {
		message = "it failed and did not say why"
	}
	if !fault.IsFinal(err) && failures <= h.MaxRetries {
		w.Log.Warn("a reaction failed and is tried again", "reaction", h.Name, "stream", l.Stream, "version", version, "failures", failures, "error", err)
		w.end(l, End{Lease: l, Done: done, Delay: h.Backoff.Pause(failures), Error: message, Failing: version})
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.Lease)
	defer cancel()
	stop := Stop(ctx, w.Engine, l, done, version, message, failures, h.BlockOnError)
	w.letGo(l)
	what := "blocked"
	if !h.BlockOnError {
		what = "skipped"
	}
	if stop != nil {
		w.Log.Warn("a reaction failed for good, and that could not be recorded: it will be tried again", "reaction", h.Name,
			"stream", l.Stream, "version", version, "error", errors.Join(err, stop))
		return
	}
	w.Log.Error("a reaction failed for good", "outcome", what, "reaction", h.Name, "stream", l.Stream, "version", version, "error", err)
	w.trace(what, l, done, err)
}

// abandon ends a lease that was lost, or whose worker is told to stop.
func (w *Worker) abandon(l *Lease, done int64, cause error) {
	if errors.Is(cause, hold.ErrLost) {
		w.letGo(l)
		w.Log.Warn("a reaction lost its stream while it worked", "reaction", l.Reaction, "stream", l.Stream)
		w.trace("lost", l, done, cause)
		return
	}
	w.end(l, End{Lease: l, Done: done, Unfinished: true})
}

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
		case o.err == nil && !o.Recorded:
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

// record records ends, as many at a time as there are.
func (w *Worker) record(stopped <-chan struct{}) {
	for {
		select {
		case first := <-w.ends:
			w.recordAll(w.gatherEnds(first))
		case <-stopped:
			return
		}
	}
}

func (w *Worker) gatherEnds(first ending) map[int16][]ending {
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
		out, err := Record(ctx, w.Engine, ends)
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
	shortest := hold.Lease
	for _, h := range w.handlers {
		shortest = min(shortest, h.Lease)
	}
	tick := time.NewTicker(max(shortest/3, 10*time.Millisecond))
	defer tick.Stop()
	failing := clock.Now()
	for {
		select {
		case <-tick.C:
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
		held, err := Renew(ctx, w.Engine, leases, func(l *Lease) time.Duration { return w.handler(l).Lease })
		if err != nil {
			return err
		}
		for i, l := range leases {
			if !held[i] {
				w.lose(l)
			}
		}
	}
	return nil
}

// patience is how long a lease is renewed: a body that hangs, whatever its context
// says, is not kept for ever, nor what waits behind it. What is not renewed runs
// out, and goes to another node. REQUIRES: mu
func (w *Worker) patience(l *Lease, g *grip) time.Duration {
	h := w.handlers[l.Reaction]
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
		if l.Deaths > 0 {
			w.suspects--
		}
		if g.begun {
			w.stuck[l.stream()] = false
		}
	}
	w.mu.Unlock()
	if g != nil && g.lost != nil {
		g.lost(hold.ErrLost)
	}
	return g != nil && g.lost == nil
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

// Counts returns how often each kind of [Crumb] was left.
func (w *Worker) Counts() map[string]int64 {
	counts := make(map[string]int64)
	w.counts.Range(func(what, n any) bool {
		counts[what.(string)] = n.(*atomic.Int64).Load()
		return true
	})
	return counts
}

// trace leaves a crumb: in the log, in the counts and with whoever asked for it.
func (w *Worker) trace(what string, l *Lease, version int64, err error) {
	n, _ := w.counts.LoadOrStore(what, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	w.Log.Debug(what, "workspace", l.Workspace, "reaction", l.Reaction, "stream", l.Stream, "version", version, "epoch", l.Epoch)
	if w.Trace == nil {
		return
	}
	c := Crumb{What: what, Workspace: l.Workspace, Reaction: l.Reaction, Stream: l.Stream, Version: version}
	if err != nil {
		c.Error = err.Error()
	}
	w.Trace(c)
}
