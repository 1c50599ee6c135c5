package lifecycleengine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/lifecycles"
	"github.com/holdfast-go/holdfast/internal/store"
)

// attempt is one try of an operation, under its hold.
//
// The body runs while a keeper renews the hold, and holds no transaction. Whatever
// its end is, the database decides what becomes of the claim, under the lock of the
// entity's row: it knows what was begun. So a body that failed after an effect began
// cannot go back, whoever thinks that it may.
type attempt struct {
	*site
	at      store.Place
	entity  entities.Entity // as the body sees it
	claim   string          // the claim status
	step    *lifecycles.Step
	lease   time.Duration
	since   time.Time // on this node's clock, before the lease was taken
	meta    events.Meta
	opaque  bool // the body as a whole is an effect
	resumed bool // an earlier attempt was left
	// How the attempt ended: its lease was lost, or somebody ended it the same way before; the lease may
	// have run out by the node's clock; it was given back.
	lost, ranOut, gaveBack bool
	output                 *json.RawMessage // where to tell it
}

// How often an operation is resumed whose body failed after an effect began, and
// after which pauses.
const (
	retries      = 5
	firstPause   = time.Second
	longestPause = 5 * time.Minute
)

// ending is how long the end of an attempt is tried to be recorded, beyond the end
// of the caller's context.
const ending = 15 * time.Second

// panicked is the error of a body that panicked.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// run runs the bodies and ends the attempt. A panic goes on afterwards.
func (t *attempt) run(ctx context.Context) (entities.Entity, error) {
	e, err := t.try(ctx)
	var p *panicked
	if errors.As(err, &p) {
		panic(p.value)
	}
	return e, err
}

// try runs the bodies and ends the attempt; a panic is an error.
func (t *attempt) try(ctx context.Context) (entities.Entity, error) {
	c := t.entity.Claim
	w := &work{entity: t.entity, step: c.Step, requester: c.Requester, operation: c.Operation, attempt: c.Failures + c.Deaths + 1, input: c.Input,
		own: t.config.Table != nil, stage: c.Stage, doubtful: t.opaque && c.Begun > 0 && t.resumed}
	j := &effects.Journal{Book: effects.OfClaim(t.engine, t.at, t.entity.Ticket())}
	err, cause := t.work(ctx, j, w)
	e, ended := t.record(ctx, w, j, err, cause)
	if t.lost || t.ranOut && !t.gaveBack {
		t.late(ctx, w, j, err, cause)
	}
	return e, ended
}

// record ends the attempt by how its bodies ended.
func (t *attempt) record(ctx context.Context, w *work, j *effects.Journal, err, cause error) (entities.Entity, error) {
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
	defer cancel()
	if errors.Is(cause, hold.ErrLost) {
		t.lost = true
		return t.entity, lostIt(t.entity, err)
	}
	if next, ok := errors.AsType[*handOn](err); ok {
		return t.handOn(end, next)
	}
	u := unfinished{err: err, cause: cause, asked: w.cleared}
	var open bool
	u.results, open, u.park = j.Rest()
	if err == nil && open {
		u.err = effects.ErrOpen
	}
	if u.err == nil {
		e, settling := t.settle(end, w, u.results)
		_, ofCommit := errors.AsType[*ofCommit](settling)
		if !ofCommit && fault.CodeOf(settling) == fault.LeaseLost {
			t.lost = true
			return e, settling
		}
		if settling != nil && e.Claim.Phase == entities.Uncertain {
			return e, settling // the database knows of an effect that this attempt does not
		}
		if settling == nil || !ofCommit && fault.CodeOf(settling) == fault.OutcomeUnknown {
			return e, settling
		}
		u.err, u.cause = settling, nil
		again, stop := context.WithTimeout(context.WithoutCancel(ctx), ending)
		defer stop()
		end = again
	}
	u.outcome, u.told = t.judge(u.err, u.cause)
	u.told = u.told || !w.started
	if w.doubtful && !w.cleared { // what it says of this attempt is no word on the one before
		u.told = false
	}
	if t.opaque && err == nil { // it has acted, whatever became of that here
		u.told, u.park = false, true
		u.results = append(u.results, entities.Result{Name: effects.Body, Result: []byte("null")})
	}
	return t.giveBack(end, u)
}

// work runs the bodies while the hold is kept, and returns why their context ended,
// if it did.
func (t *attempt) work(ctx context.Context, j *effects.Journal, w *work) (err, cause error) {
	ticket := t.entity.Ticket()
	k := &hold.Keeper{Lease: t.lease, Since: t.since, Timeout: timeoutOf(t.step), Renew: func(ctx context.Context) error {
		_, err := entities.Renew(ctx, t.engine, t.at, ticket, t.lease)
		return err
	}}
	j.Held, w.held = k.Held, k.Held
	body := k.Start(effects.With(ctx, j))
	defer k.Stop()
	err = caught(func() error { return t.bodies(body, t.step, w) })
	cause = context.Cause(body)
	t.ranOut = k.RanOut()
	return err, cause
}

// late reports the calls of an attempt that has lost its lease. An opaque body is a call itself,
// unless it said that it did nothing.
func (t *attempt) late(ctx context.Context, w *work, j *effects.Journal, err, cause error) {
	calls := j.Made()
	if t.opaque && w.started {
		state := effects.Done
		if err != nil {
			state = effects.Unknown
		}
		if _, told := t.judge(err, cause); err == nil || !told {
			calls = append(calls, effects.LateCall{Name: effects.Body, State: state})
		}
	}
	t.reportLate(ctx, calls)
}

func (t *attempt) reportLate(ctx context.Context, calls []effects.LateCall) {
	reportLate(ctx, t.engine, t.at, t.entity.Lifecycle, t.entity.ID, t.entity.Claim.Operation, t.entity.Claim.Epoch, calls)
}

func reportLate(ctx context.Context, e *engine.Engine, at store.Place, lifecycle, id, operation string, epoch int64, calls []effects.LateCall) {
	effects.Late(ctx, e, at, effects.Holder{Operation: operation, Subject: lifecycle + "/" + id, Epoch: epoch, Node: e.Node()}, calls, e.Log())
}

// caught makes an error of a panic.
func caught(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicked{p, debug.Stack()}
		}
	}()
	return f()
}

func lostIt(e entities.Entity, err error) error {
	lost := hold.Lost("the "+e.Lifecycle+" "+e.ID, e.Claim.Epoch)
	if err != nil {
		lost = lost.Wrap(err)
	}
	return lost
}

// settle ends an operation that is done. While the database does not answer and the
// hold may last, it is tried again: the work is done.
func (t *attempt) settle(ctx context.Context, w *work, results []entities.Result) (e entities.Entity, err error) {
	defer func() {
		if p := recover(); p != nil { // of a commit
			err = &panicked{p, debug.Stack()}
		}
	}()
	to, _ := t.step.Success.For(w.requester)
	if t.opaque {
		results = append(slices.Clone(results), entities.Result{Name: effects.Body, Result: []byte("null")})
	}
	args := entities.EndArgs{Ticket: t.entity.Ticket(), How: entities.Success, To: to, Data: w.data, Results: results, Event: settled(t.step.Key),
		Outcome: "success", Meta: t.meta}
	args.After = afterOf(t.step, w.requester)
	args.Note = settledNote(args.After, w.output)
	e, err = patiently(ctx, func() (entities.Entity, error) { return t.ground.end(ctx, t.at, args, t.claim, w.commits) })
	t.lost = t.lost || e.Claim.Repeated
	if err == nil && t.output != nil {
		*t.output = w.output
	}
	if err == nil && e.Claim.Phase != entities.Free {
		return e, t.outcome(effects.ErrOpen, "uncertain", e) // an effect is unknown, which the journal of this attempt did not see
	}
	return e, err
}

// settledNote is what the event of a settled step tells besides.
func settledNote(after string, output []byte) []byte {
	note := make(map[string]any)
	if after != "" {
		note["after"] = after
	}
	if len(output) > 0 {
		note["output"] = json.RawMessage(output)
	}
	if len(note) == 0 {
		return nil
	}
	return []byte(text(note))
}

// patiently tries again while the database does not answer, for a while.
func patiently(ctx context.Context, f func() (entities.Entity, error)) (entities.Entity, error) {
	begun := clock.Now()
	for pause := 20 * time.Millisecond; ; pause *= 2 {
		e, err := f()
		known, ok := errors.AsType[*fault.Error](err)
		if _, own := errors.AsType[*ofCommit](err); own || !ok || known.Code != fault.Unavailable || !known.Safe || clock.Since(begun)+pause > ending || clock.Wait(ctx, pause) != nil {
			return e, err
		}
	}
}

// unfinished is an attempt that did not succeed.
type unfinished struct {
	err, cause error
	results    []entities.Result
	outcome    string
	told       bool // by the body itself, or it has not begun
	park       bool // another attempt would not help
	asked      bool // the other side said that no earlier attempt acted
}

// giveBack ends an attempt that is not done: the entity goes back, or, if something
// was begun, waits for another attempt or for a person.
func (t *attempt) giveBack(ctx context.Context, u unfinished) (entities.Entity, error) {
	args := entities.EndArgs{Ticket: t.entity.Ticket(), How: entities.Back, Results: u.results, Event: "released", Outcome: u.outcome, Message: plainly(u.err),
		Delay: pauseAfter(t.entity.Claim.Failures), Retries: retries, Meta: t.meta}
	if failed, ok := t.step.Failed.For(t.entity.Claim.Requester); ok && u.outcome == "failed" {
		args.To, args.Event = failed, "failed/"+t.step.Key
	}
	if !u.told && t.safety(t.step, t.entity.Claim.Requester) == lifecycles.Undeclared {
		args.Note = []byte(`{"outcomeUnknown":true}`)
	}
	if u.park || u.outcome == "invalid" || fault.IsFinal(u.err) || (t.opaque && !u.told && t.unknown(t.step, t.entity.Claim.Requester) == effects.Hold) {
		args.How = entities.Park
	}
	e, ended := t.end(ctx, args, t.opaque && u.told, u.asked)
	t.lost, t.gaveBack = t.lost || fault.CodeOf(ended) == fault.LeaseLost, ended == nil
	if ended != nil {
		return t.entity, errors.Join(t.outcome(u.err, "unreleased", t.entity), ended)
	}
	switch e.Claim.Phase {
	case entities.Due:
		return e, t.outcome(u.err, "pending", e)
	case entities.Uncertain:
		t.engine.Log().Warn("an operation is uncertain, and waits for a person", "lifecycle", e.Lifecycle, "entity", e.ID,
			"operation", e.Claim.Operation, "step", e.Claim.Step, "error", u.err)
		return e, t.outcome(u.err, "uncertain", e)
	}
	return e, t.outcome(u.err, "released", e)
}

// end records the end, first that the body, where it is an effect itself, says that
// it has done nothing.
func (t *attempt) end(ctx context.Context, args entities.EndArgs, nothing, asked bool) (e entities.Entity, err error) {
	return patiently(ctx, func() (entities.Entity, error) {
		if nothing {
			if _, err := effects.End(ctx, t.engine, t.at, args.Ticket, effects.Body, 0, effects.NotDone, nil, asked); err != nil && fault.CodeOf(err) != fault.LeaseLost {
				return e, err // a lost hold is found out below, and who ends again is told the same
			}
		}
		return t.ground.end(ctx, t.at, args, t.claim, nil)
	})
}

// judge names the outcome of a body that did not succeed, and says whether that is
// the body's own word.
func (t *attempt) judge(err, cause error) (outcome string, told bool) {
	var p *panicked
	switch {
	case errors.As(err, &p):
		t.engine.Log().Error("the action of a step panicked", "lifecycle", t.entity.Lifecycle, "entity", t.entity.ID, "step", t.step.Key,
			"panic", p.value, "stack", string(p.stack))
		return "panicked", false
	case errors.Is(cause, hold.ErrTimeout), errors.Is(err, errTimeout):
		return "timeout", false
	case cause != nil:
		return "cancelled", false
	case errors.Is(err, ErrUnheard):
		return "unheard", false
	case fault.CodeOf(err) == fault.ActionInvalid:
		return "invalid", true
	}
	return "failed", true
}

// plainly is what an error says, without its code.
func plainly(err error) string {
	if f, ok := err.(*fault.Error); ok {
		return f.Message
	}
	return err.Error()
}

func pauseAfter(failures int) time.Duration {
	pause := firstPause
	for range min(failures, 20) {
		pause = min(2*pause, longestPause)
	}
	return clock.Jitter(pause)
}

// outcome is what the caller is told.
func (t *attempt) outcome(err error, outcome string, e entities.Entity) error {
	var p *panicked
	if errors.As(err, &p) {
		return err
	}
	f := fault.New(fault.ActionFailed, "%s", plainly(err))
	if as, ok := errors.AsType[*fault.Error](err); ok && as.Code == fault.ActionInvalid {
		f = fault.New(fault.ActionInvalid, "%s", as.Message)
	}
	switch outcome {
	case "pending":
		f.Message += " (something was begun that may have happened: the operation will be resumed)"
	case "uncertain":
		f.Message += " (something was begun that may have happened: the operation waits until a person resolves it)"
	}
	return f.Wrap(err).With("outcome", outcome).With("operation", e.Claim.Operation).With("status", e.Status)
}
