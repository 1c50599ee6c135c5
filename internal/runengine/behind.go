package runengine

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/remote"
)

// trail records the steps of a run that a worker serves.
//
// A step whose handler and the handler of the next step declare it (Handled.Behind) is recorded behind: the next body
// begins while the end of the step waits to be recorded or is being recorded. The ends that wait are recorded together, as
// one record: one statement (runs.finish_steps) writes them in order, all or none.
//
//   - The database has one step of the run as held: the anchor. Its lease covers the bodies of all later steps, and is
//     renewed while they run. A record ends the anchor and begins the last step, which is the next anchor, so a holder
//     that has lost the lease of the anchor can record nothing of what it did after it.
//   - A record is sent when its first end has waited for the delay of the worker, or at the limit of the trail, or before
//     anything that requires what came before to be recorded. One record is in flight at a time.
//   - These require that, and wait for it: a step that is not so declared, a failure, an effect, a write in the
//     transaction of a step (WriteTx), the end of the run, and the stop of the worker.
//   - A record is refused if the version of the run has changed: by a signal, a pause, a cancel. The ends are then
//     recorded one by one, as if they had not been behind, as long as each begins the step that the trail expects. Where
//     it does not, because the run is paused or cancelled, the trail ends: the later ends are dropped, and the body in
//     flight is told to stop. Those steps have not begun as far as the database knows.
//
// What is dropped or lost by a crash runs again, from the anchor. This is what the declaration allows.
//
// Rejected: a record for each step, of which several are in flight. They would have to arrive in order, and each would
// write the row of the run.
type trail struct {
	w   *Worker
	ctx context.Context

	mu       sync.Mutex
	anchor   ClaimedStep // the step that the database has as held, or the run after its last record
	tip      ClaimedStep // the step whose body runs
	renewed  time.Time   // a time before the lease of the anchor was taken or last renewed
	waiting  []behind
	unsaved  int                     // ends that wait or are in flight
	size     int                     // and their size in bytes
	timer    *time.Timer             // until waiting is sent
	flight   chan struct{}           // closed when the records in flight have ended; nil without any
	moved    chan struct{}           // closed when the next record has ended
	err      error                   // why the trail has ended
	unwanted context.CancelCauseFunc // stops the body that runs
}

// behind is the end of a step that is recorded behind.
type behind struct {
	plannedEnd
	done Done
	last bool // the next step, if there is one, does not belong to the trail
}

func (b *behind) size() int { return len(b.output) + len(b.beginInput) + len(b.state) + len(b.memo) }

// The limits of a trail: at most so many ends, and about so many bytes, are not recorded.
const (
	maxBehind      = 16
	maxBehindBytes = 256 << 10
)

// defaultRecordDelay is how long the end of a step waits for the ends of the next ones.
const defaultRecordDelay = 2 * time.Millisecond

func (w *Worker) recordDelay() time.Duration { return cmp.Or(w.RecordDelay, defaultRecordDelay) }

// errMovedOn ends a trail because the run has not begun the step that the trail expected.
var errMovedOn = errors.New("the run was paused or cancelled, or the end of an earlier step could not be stored")

func newTrail(ctx context.Context, w *Worker, l *ClaimedStep) *trail {
	return &trail{w: w, ctx: ctx, anchor: *l, tip: *l, renewed: l.since, moved: make(chan struct{})}
}

// behind reports whether a step may be recorded behind.
func (w *Worker) behind(s *Step) bool {
	return s.Safety == idempotent && w.Handlers()[s.Handler].Behind
}

// begin sets the function that stops the body that begins, and returns when the lease was last renewed. It returns an
// error if the trail has ended.
func (t *trail) begin(unwanted context.CancelCauseFunc) (renewed time.Time, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unwanted = unwanted
	return t.renewed, t.err
}

// end records the end of the body, after everything before it, and returns the step that begins.
func (t *trail) end(ctx context.Context, done Done, failure error, j *effects.Journal, stopping bool) (ClaimedStep, error) {
	l, err := t.saved()
	if err != nil {
		return l, err
	}
	next, err := t.w.record(ctx, &l, done, failure, j, stopping)
	if err == nil {
		t.mu.Lock()
		t.anchor, t.tip, t.renewed = next, next, next.since
		t.mu.Unlock()
	}
	return next, err
}

// follow records the successful end of the body behind, and returns the step that begins. If the next step is not
// recorded behind, or the run ends, follow waits until the end is recorded, together with those that wait. ok is false
// if the end must be recorded by itself.
func (t *trail) follow(done Done, j *effects.Journal) (next ClaimedStep, ok bool, err error) {
	t.mu.Lock()
	tip, none := t.tip, t.unsaved == 0
	t.mu.Unlock()
	if !t.w.behind(&tip.Step) || len(done.Commits) > 0 || done.Whole || j.Used() {
		return next, false, nil
	}
	p, ok := t.w.Executor.planEnd(t.ctx, t.w.Engine, &tip, t.w.ended(done, nil))
	if !ok {
		return next, false, nil
	}
	next = p.expected()
	last := !next.taken || !t.w.behind(&next.Step)
	if last && none {
		return next, false, nil
	}
	if t.add(behind{p, done, last}, next) || last {
		next, err = t.saved()
	}
	return next, true, err
}

// add adds an end to those that wait, and reports whether they must be recorded now.
func (t *trail) add(b behind, next ClaimedStep) (full bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting, t.tip = append(t.waiting, b), next
	t.unsaved++
	t.size += b.size()
	if t.timer == nil && t.flight == nil {
		t.timer = time.AfterFunc(t.w.recordDelay(), t.send)
	}
	return t.unsaved >= maxBehind || t.size >= maxBehindBytes
}

// saved waits until everything is recorded, and returns the step that the database has as held.
func (t *trail) saved() (ClaimedStep, error) {
	for {
		t.mu.Lock()
		l, flight, waits, err := t.anchor, t.flight, len(t.waiting) > 0, t.err
		t.mu.Unlock()
		switch {
		case flight != nil:
			<-flight // it ends with its context
		case err != nil || !waits:
			return l, err
		default:
			t.send()
		}
	}
}

// send records the ends that wait, and those that come meanwhile.
func (t *trail) send() {
	flight := make(chan struct{})
	t.mu.Lock()
	if t.flight != nil || len(t.waiting) == 0 || t.err != nil {
		t.mu.Unlock()
		return
	}
	t.flight = flight
	t.mu.Unlock()
	for all, anchor := t.take(); len(all) > 0; all, anchor = t.take() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.w.lease()) // each record begins a lease
		next, err := t.record(ctx, anchor, all)
		cancel()
		t.recorded(all, next, err)
	}
	close(flight)
}

// take takes the ends that wait, or none if the trail has ended.
func (t *trail) take() (all []behind, anchor ClaimedStep) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	if all, t.waiting = t.waiting, nil; len(all) == 0 || t.err != nil {
		if t.flight = nil; t.err == nil {
			t.tip = t.anchor // with the version that the run has
		}
		return nil, t.anchor
	}
	return all, t.anchor
}

// recorded ends a record. If it failed, the trail ends.
func (t *trail) recorded(all []behind, next ClaimedStep, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.moved)
	t.moved = make(chan struct{})
	t.unsaved -= len(all)
	for i := range all {
		t.size -= all[i].size()
	}
	if t.anchor = next; err == nil {
		t.renewed = next.since
	} else {
		t.err = err
		t.unwanted(err)
	}
}

// record records ends under the lease of the anchor, and returns the run after the last of them.
func (t *trail) record(ctx context.Context, anchor ClaimedStep, all []behind) (ClaimedStep, error) {
	if all[0].version == anchor.Run.Version {
		ends := make([]plannedEnd, len(all))
		for i := range all {
			ends[i] = all[i].plannedEnd
		}
		m, err := t.w.Executor.recordEnds(ctx, t.w.Engine, ends)
		switch code := fault.CodeOf(err); {
		case err == nil && m.applied:
			return ends[len(ends)-1].after(m), nil
		case err == nil && m.version == anchor.Run.Version: // the run is unchanged, so the step differs
			return anchor, anchor.late(ctx, t.w.Engine, "settle", lostStep(&anchor))
		case code == fault.LeaseLost, code == fault.OutcomeUnknown, err != nil && ctx.Err() != nil:
			return anchor, err
		}
	}
	for i := range all {
		next, err := t.w.record(ctx, &anchor, all[i].done, nil, new(effects.Journal), false)
		if err != nil {
			return anchor, err
		}
		if expected := all[i].expected(); !all[i].last && (!next.taken || next.visited() != expected.visited()) {
			return next, errMovedOn
		}
		anchor = next
	}
	return anchor, nil
}

// renew renews the lease of the anchor. A record may end the anchor while the renewal is under way, even one that began
// after it; then the step that the record began is renewed.
func (t *trail) renew(ctx context.Context) (remote.Renewed, error) {
	for {
		t.mu.Lock()
		l := t.anchor
		t.mu.Unlock()
		since := clock.OfMachine()
		r, err := renew(ctx, t.w.Engine, &l, t.w.lease())
		if err == nil {
			t.mu.Lock()
			if since.After(t.renewed) {
				t.renewed = since
			}
			t.mu.Unlock()
			return r, nil
		}
		if fault.CodeOf(err) != fault.LeaseLost {
			return r, err
		}
		if gone, failed := t.gone(ctx, &l); gone || failed != nil {
			return r, l.late(ctx, t.w.Engine, "renew", cmp.Or(failed, err))
		}
	}
}

// gone reports whether a step that the database no longer has as held is still the anchor, so that its lease is lost.
// A record in flight may have ended it: gone waits for its result.
func (t *trail) gone(ctx context.Context, l *ClaimedStep) (bool, error) {
	for {
		t.mu.Lock()
		same, flight, moved := t.anchor.visited() == l.visited(), t.flight, t.moved
		t.mu.Unlock()
		if !same || flight == nil {
			return same, nil
		}
		select {
		case <-moved:
		case <-flight:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// trailBook is the journal store of a step. An effect begins when everything before it is recorded.
type trailBook struct {
	effects.Book
	t *trail
}

// Begin records that an effect is about to be attempted.
func (b *trailBook) Begin(ctx context.Context, name string, ordinal int, p effects.Policy, results []entities.Result) (effects.Entry, error) {
	if _, err := b.t.saved(); err != nil {
		return effects.Entry{}, err
	}
	return b.Book.Begin(ctx, name, ordinal, p, results)
}
