package holdfasttest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/inbox"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Waiting is something that no loop of the engine continues: it waits for a person, a signal, or a handler that the
// engine does not have.
type Waiting struct {
	// Kind is a kind of the inbox, such as "uncertainOperation", "uncertainStep", "blockedStream", "failedRun",
	// "pendingApproval", "pausedBatch" or "unservedWork"; or "waitingSignal" or "pausedRun".
	Kind string
	// Subject is what waits: "<lifecycle>/<entity>", "<run>/<step>", "<reaction> on <stream>", or the run or batch.
	Subject string
	// Owner is who can continue it, if that is known, such as the requesters of an approval.
	Owner string
	// Reason is a sentence for a reader.
	Reason string
	// Deadline is the end of the wait; zero if it has none.
	Deadline time.Time
}

// String returns the wait in one line.
func (w Waiting) String() string {
	text := w.Kind + " " + w.Subject
	if w.Owner != "" {
		text += " (" + w.Owner + ")"
	}
	return text + ": " + w.Reason
}

// settleLimit is the number of steps after which Settle gives up.
const settleLimit = 3000 // an after-effect that always fails is tried 1,000 times, with a pause before each

// Settle does what is due in the context's workspace, in this goroutine: it delivers events to reactions and
// after-effects, resumes operations, runs steps of runs and items of batches, reverts entities that other code has put into
// a claim status, and releases expired leases, one after
// the other and with the code of a running engine. When nothing is due, it moves the clock of the database to what is
// due next: the end of a lease, a retry, or a timer. It returns when nothing is left that time could change, with all
// that waits for somebody.
//
// It lets no deadline of an approval or a signal pass: it returns the wait, and the test decides, sends the signal, or
// moves the clock with [Advance], and calls Settle again.
//
// Every lease counts as that of a crashed process, also the lease of a claim that the test itself holds. The engine must
// not be running. An error is one of the engine, or says what was done last if the work has no end.
func Settle(ctx context.Context, hf *holdfast.Engine) ([]Waiting, error) {
	e := engine.Of(hf)
	if e.Running() {
		return nil, fault.New(fault.Conflict, "Settle does the work of the loops itself: call it on an engine that is not running")
	}
	if err := e.Learn(crash.Aside(ctx)); err != nil { // reads what other nodes have declared
		return nil, err
	}
	s := settling{e: e, idle: make(map[wake.WorkKind]bool)}
	for range settleLimit {
		if quiet, err := s.step(ctx); err != nil {
			return nil, err
		} else if quiet {
			return s.waiting(ctx)
		}
	}
	return nil, fmt.Errorf("the workspace does not settle: after %d steps there is still work due, last %s", settleLimit, s.last)
}

type settling struct {
	e    *engine.Engine
	idle map[wake.WorkKind]bool // found nothing to do since the last thing was done
	last wake.WorkKind
	left []inbox.Upcoming // what it found in the last step

	waits int // for transactions in flight

	cleanups int  // how many were tried in a row
	failing  bool // cleanups fail again and again: they wait for a person
}

// mostCleanups is how many cleanups are tried in a row before those that fail are left to a person. They are retried without end.
const mostCleanups = 20

// mostWaits is how often Settle waits for transactions in flight, for waitFor each.
const (
	mostWaits = 400
	waitFor   = 5 * time.Millisecond
)

// step does one thing that is due, or moves the clock; quiet means that there is nothing to do.
func (s *settling) step(ctx context.Context) (quiet bool, err error) {
	at, err := s.e.Partition(crash.Aside(ctx), store.Read)
	if err != nil {
		return false, err
	}
	if s.left, err = inbox.ListUpcoming(crash.Aside(ctx), s.e, at); err != nil {
		return false, err
	}
	// What is due has no order in time: whether two things became due in the same millisecond differs between runs.
	slices.SortStableFunc(s.left, func(a, b inbox.Upcoming) int {
		return cmp.Or(cmp.Compare(max(a.In, 0), max(b.In, 0)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	for _, u := range s.left {
		if u.Waits() || s.failing && u.Kind == wake.Cleaning {
			continue
		}
		if u.In > 0 { // nothing before it is left to do
			clear(s.idle)
			return false, store.Shift(crash.Aside(ctx), s.e, u.In+time.Millisecond)
		}
		step := s.e.StepOf(u.WorkKind)
		if step == nil || s.idle[u.WorkKind] {
			continue
		}
		in := ctx
		if u.Kind == wake.UnfinishedReaction && s.waits > 0 { // how often it is tried differs between runs
			in = crash.Aside(ctx)
		}
		found, err := step(in, at)
		if err != nil {
			return false, fmt.Errorf("%s: %w", u.WorkKind, err)
		}
		if s.cleanups++; u.Kind != wake.Cleaning {
			s.cleanups = 0
		}
		if s.cleanups >= mostCleanups {
			failing, _, err := inbox.List(crash.Aside(ctx), s.e, inbox.FailingTeardown)
			if err != nil {
				return false, err
			}
			s.failing = len(failing) > 0
		}
		switch s.last = u.WorkKind; {
		case found:
			clear(s.idle)
		case u.Kind == wake.UnfinishedReaction && s.waits < mostWaits: // transactions that began before it are in flight
			s.waits++
			return false, clock.Wait(ctx, waitFor)
		default:
			s.idle[u.WorkKind] = true
		}
		return false, nil
	}
	adopted, err := s.e.Adopt(crash.Aside(ctx), at)
	return !adopted, err
}

// persons are the kinds of entries that no loop continues.
var persons = []inbox.Kind{inbox.UncertainOperation, inbox.UncertainStep, inbox.BlockedStream, inbox.RefusedWebhook, inbox.FailedRun,
	inbox.PendingApproval, inbox.PausedBatch, inbox.FailingTeardown}

// waiting returns what waits for somebody.
func (s *settling) waiting(ctx context.Context) (all []Waiting, err error) {
	entries, _, err := inbox.List(crash.Aside(ctx), s.e, persons...)
	if err != nil {
		return nil, err
	}
	now, err := s.e.Status(crash.Aside(ctx))
	if err != nil {
		return nil, err
	}
	seen := make(map[wake.WorkKind]bool)
	for _, u := range s.left {
		// These stay listed although a loop of this engine has just tried them. If they wait for somebody, the inbox
		// says so. The feed waits for nobody.
		served := s.e.StepOf(u.WorkKind) != nil && (u.Kind == wake.PausedBatch || u.Kind == wake.Maintenance)
		if u.Name == feed.Reaction || served || seen[u.WorkKind] || u.EndsByItself() || s.failing && u.Kind == wake.Cleaning {
			continue
		}
		seen[u.WorkKind] = true
		entries = append(entries, u.Entry(now.Now))
	}
	for _, e := range entries {
		all = append(all, Waiting{Kind: string(e.Kind), Subject: e.Subject, Owner: e.Owner, Reason: e.Reason, Deadline: e.Deadline})
	}
	return all, nil
}

// Person acts on something that waits: it decides, sends a signal or resolves an effect, as a person does, and returns
// whether it did something. In [Crash] it may have to act again, because the response of its first call was lost.
type Person func(ctx context.Context, hf *holdfast.Engine, w Waiting) (acted bool, err error)

// SettleWith calls [Settle] and lets a person act on what waits, until the person does nothing more.
func SettleWith(ctx context.Context, hf *holdfast.Engine, person Person) error {
	for range settleLimit {
		waiting, err := Settle(ctx, hf)
		if err != nil || person == nil {
			return err
		}
		again := false
		for _, w := range waiting {
			acted, err := person(ctx, hf, w)
			if err != nil {
				return fmt.Errorf("%s: %w", w, err)
			}
			again = again || acted
		}
		if !again {
			return nil
		}
	}
	return fmt.Errorf("the workspace does not settle: a person acted %d times", settleLimit)
}
