package lifecycleengine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Claim is a manual claim, for a body that runs elsewhere. It is held until its lease
// expires, unless it is renewed. It is safe for concurrent use.
type Claim struct {
	Entity Entity

	t       *attempt
	renewed atomic.Pointer[time.Time] // end of the lease after the last renewal
}

// Outcome is the outcome that a claim is settled with.
type Outcome string

// The outcomes.
const (
	Success  Outcome = "success"
	Failure  Outcome = "failure"
	Rejected Outcome = "invalid"
)

// Claim takes the claim of a step and leaves the body to the caller; lifecycle.Lifecycle.Claim documents it.
func (l *Lifecycle) Claim(ctx context.Context, e *engine.Engine, id, step, as string, o FireOptions) (*Claim, error) {
	s, err := l.at(e)
	if err != nil {
		return nil, err
	}
	r, err := s.request(ctx, id, step, as, o)
	if err != nil {
		return nil, err
	}
	t, found, err := s.claim(ctx, r)
	if refusal(err) {
		s.recordRefusal(ctx, r, found, err)
	}
	if err != nil {
		return nil, err
	}
	return &Claim{Entity: Public(t.entity), t: t}, nil
}

func (s *bound) claim(ctx context.Context, r *request) (*attempt, entities.Entity, error) {
	var found entities.Entity
	all, claimed := s.choices(r.steps, r.as)
	for status, c := range all {
		claimed = claimed && c.Into != status // a claim that keeps the status is only for fired bodies
	}
	if !claimed {
		return nil, found, fault.New(fault.Validation, "step %q of lifecycle %q is not claimed for requester %q: fire the step instead", r.step, s.config.Workflow, r.as)
	}
	for _, step := range r.steps {
		if s.worker(step.Validation, r.as) != nil {
			return nil, found, fault.New(fault.Validation, "the validation of step %q is served by workers: fire the step instead of claiming it", r.step)
		}
	}
	args := entities.ClaimArgs{Choices: all, Holder: cmp.Or(r.Meta.Actor, s.engine.Node()), Lease: cmp.Or(r.Lease, s.stuckAfter()), Manual: true}
	var t *attempt
	found, err := s.underKey(ctx, r, func(ctx context.Context) (entities.Entity, error) {
		e, err := s.retryExpired(ctx, func() (e entities.Entity, err error) { t, e, err = s.take(ctx, r, args); return e, err })
		if err != nil {
			return e, err
		}
		return e, t.runValidation(ctx)
	})
	if err == nil && t == nil {
		err = fault.New(fault.Conflict, "the claim for this request has already been settled with success").With("outcome", "success")
	}
	return t, found, err
}

// Held returns a manual claim that was taken earlier, on this or another node, given its
// operation and epoch. It does not check the lease: using a lost claim returns
// [holdfast.ErrLeaseLost].
func (l *Lifecycle) Held(ctx context.Context, e *engine.Engine, id, operation string, epoch int64) (*Claim, error) {
	s, err := l.at(e)
	if err != nil {
		return nil, err
	}
	at, err := e.Partition(ctx, store.Write)
	if err != nil {
		return nil, err
	}
	now, err := s.claimed(ctx, id)
	if err != nil {
		return nil, err
	}
	if now.Claim.Operation != operation {
		return nil, gone(lease.Lost(l.Name()+" "+id, epoch), now)
	}
	t, err := s.attemptOf(ctx, at, now, operation, epoch)
	if err != nil {
		return nil, err
	}
	return &Claim{Entity: Public(t.entity), t: t}, nil
}

// goneError is the error of a holder whose operation had ended before the call. It was found by a read; a statement that
// refuses a late holder records the refusal itself.
type goneError struct {
	err *fault.Error
	now entities.Entity // without its claim, which is another holder's
}

func gone(err *fault.Error, now entities.Entity) error {
	now.Claim = entities.Claim{}
	return &goneError{err, now}
}

func (g *goneError) Error() string { return g.err.Error() }
func (g *goneError) Unwrap() error { return g.err }

// NoteGone records the refusal of a holder whose operation had ended before the call, if err says so, and returns err. It is
// called after the check whether the call repeats the end that the holder itself gave the operation.
func NoteGone(ctx context.Context, e *engine.Engine, t entities.Ticket, requester, action string, err error) error {
	g, ok := errors.AsType[*goneError](err)
	if !ok {
		return err
	}
	at, failed := e.Partition(ctx, store.Read)
	if failed != nil {
		return err
	}
	g.now.Claim.Requester = requester
	return entities.Lost(ctx, e, at, t, action, &g.now)
}

// runValidation runs the validation of a manual claim, and releases the claim if the
// validation does not pass.
func (t *attempt) runValidation(ctx context.Context) error {
	h := t.handler(t.step.Validation, t.entity.Claim.Requester)
	if h == nil {
		return nil
	}
	c := t.entity.Claim
	err := catchPanic(func() error {
		return h.call(effects.With(ctx, nil), &work{entity: t.entity, step: c.Step, requester: c.Requester, operation: c.Operation, attempt: 1, input: c.Input, own: t.config.Table != nil})
	})
	if err == nil {
		return nil
	}
	return t.refuse(ctx, err)
}

// refuse releases a claim whose body has not begun, because of err, and returns the error that the caller gets.
func (t *attempt) refuse(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ending)
	defer cancel()
	outcome, _ := t.decide(err, nil)
	_, released := t.giveBack(ctx, unfinished{err: err, outcome: outcome, reported: true, unchecked: true})
	if p, ok := errors.AsType[*panicked](err); ok {
		panic(p.value)
	}
	return released
}

// Refuse releases a claim that cannot be used, because of err, and returns the error that the caller gets.
func (c *Claim) Refuse(ctx context.Context, err error) error { return c.t.refuse(ctx, err) }

// Operation returns the id of the claim's operation.
func (c *Claim) Operation() string { return c.t.entity.Claim.Operation }

// Until returns when the claim expires.
func (c *Claim) Until() time.Time {
	if renewed := c.renewed.Load(); renewed != nil {
		return *renewed
	}
	return c.t.entity.Claim.Until
}

// Renew extends the claim, or returns [holdfast.ErrLeaseLost].
func (c *Claim) Renew(ctx context.Context, lease time.Duration) (until time.Time, err error) {
	until, err = entities.Renew(ctx, c.t.engine, c.t.at, c.t.entity.Ticket(), cmp.Or(lease, c.t.stuckAfter()))
	if err == nil {
		c.renewed.Store(&until)
	}
	return until, err
}

// Settle ends the claim; lifecycle.Claim.Settle documents it.
func (c *Claim) Settle(ctx context.Context, o Outcome, data json.RawMessage, f func(context.Context, *store.Tx) error) (Entity, error) {
	if o != Success {
		return c.End(ctx, o, "")
	}
	w := &work{requester: c.t.entity.Claim.Requester}
	if data != nil && c.t.config.Table != nil {
		return c.Entity, fault.New(fault.Validation, "entity %q is a row in the program's own table: change the row in the transaction", c.Entity.ID)
	}
	w.data = data
	return c.settle(ctx, w, f)
}

// SettlePatch ends the claim with success, as [Claim.Settle] does, and applies a merge patch to the entity's data, or to
// the columns of its row that may be set. An empty patch changes nothing.
func (c *Claim) SettlePatch(ctx context.Context, patch json.RawMessage, f func(context.Context, *store.Tx) error) (Entity, error) {
	w := &work{requester: c.t.entity.Claim.Requester}
	if len(patch) > 0 {
		if err := c.t.patch(w, c.t.entity, patch); err != nil {
			return c.Entity, err
		}
	}
	return c.settle(ctx, w, f)
}

func (c *Claim) settle(ctx context.Context, w *work, f func(context.Context, *store.Tx) error) (Entity, error) {
	if f != nil {
		w.commits = append(w.commits, f)
	}
	e, err := c.t.settleElsewhere(ctx, w)
	if c.t.lost || fault.CodeOf(err) == fault.LeaseLost {
		c.t.reportLate(ctx, bodyDone)
	}
	if p, ok := errors.AsType[*panicked](err); ok {
		panic(p.value)
	}
	return publicEntity(e, err)
}

// bodyDone is the late call of an opaque body that acted. It is stored only if the journal
// contains such a body.
var bodyDone = []effects.LateCall{{Name: effects.Body, State: effects.Done}}

// End ends the claim with a reason and an outcome other than success.
func (c *Claim) End(ctx context.Context, o Outcome, reason string) (Entity, error) {
	outcome := map[Outcome]string{Failure: "failed", Rejected: "invalid"}[o]
	if outcome == "" {
		return c.Entity, fault.New(fault.Validation, "outcome must be success, failure or invalid, got %q", o)
	}
	t := c.t
	args := entities.EndArgs{Ticket: t.entity.Ticket(), How: entities.Back, Event: "released", Outcome: outcome, Message: reason, Meta: t.meta}
	if failed, ok := t.step.Failed.For(t.entity.Claim.Requester); ok && o == Failure {
		args.To, args.Event = failed, "failed/"+t.step.Key
	}
	e, err := t.end(ctx, args, t.opaque, false)
	if fault.CodeOf(err) == fault.LeaseLost {
		now, failed := t.claimed(ctx, t.entity.ID)
		if failed == nil && now.Claim.Phase == entities.Uncertain && now.Ticket() == t.entity.Ticket() {
			if was, failed := Ended(ctx, t.engine, t.entity.Ticket()); failed == nil && was.How == EndedOpen {
				e, err = now, nil // this end was recorded before
			}
		}
	}
	return publicEntity(e, err)
}

// Effect is one external side effect of an operation, as recorded in the journal.
type Effect struct {
	Name    string
	Ordinal int
	Key     string
	State   string // "begun", "done" or "notDone"
	Policy  string // "hold", "retry" or "probe"
	Result  json.RawMessage
	Since   time.Time
}

// Effect journals an effect of a body that runs elsewhere; lifecycle.Claim documents it.
func (c *Claim) Effect(ctx context.Context, x remote.Effect) (Effect, error) {
	policy := effects.Hold
	if !c.t.entity.Claim.Manual {
		policy = c.t.unknown(c.t.step, c.t.entity.Claim.Requester)
	}
	s, err := c.t.effect(ctx, policy, x)
	return Effect{Name: x.Name, Ordinal: x.Ordinal, Key: s.Key, State: s.State, Policy: string(policy), Result: s.Result}, err
}

// Journaled is [Claim.Effect], and returns the effect as the journal has it, with its policy and the time of its begin.
func (c *Claim) Journaled(ctx context.Context, x remote.Effect) (Effect, error) {
	e, err := c.Effect(ctx, x)
	if err != nil {
		return e, err
	}
	journal, err := effects.List(ctx, c.t.engine, c.t.at, c.Operation())
	for _, y := range journal {
		if y.Name == x.Name && y.Ordinal == x.Ordinal {
			e.Policy, e.Since = string(y.Policy), y.BegunAt
		}
	}
	return e, err
}

// effect journals an effect of a body that runs elsewhere.
func (t *attempt) effect(ctx context.Context, p effects.Policy, x remote.Effect) (remote.EffectState, error) {
	if len(x.Result) > 0 {
		if err := strictjson.Check(x.Result); err != nil {
			return remote.EffectState{}, err
		}
	}
	state, unknown, err := x.Journal(ctx, effects.OfClaim(t.engine, t.at, t.entity.Ticket()), p)
	if fault.CodeOf(err) == fault.LeaseLost && len(x.Result) > 0 && !x.NotDone {
		LateCalls(ctx, t.engine, t.entity.Ticket(), effects.LateCall{Name: x.Name, Ordinal: x.Ordinal, State: effects.Done, Result: x.Result})
	}
	if unknown {
		err = t.parkUnknown(ctx, x)
	}
	return state, err
}

// parkUnknown parks the operation of an effect that an earlier attempt began and whose
// outcome is unknown. It returns the error for the worker.
func (t *attempt) parkUnknown(ctx context.Context, x remote.Effect) error {
	unknown := effects.BegunBefore(x.Name, x.Ordinal)
	_, released := t.giveBack(ctx, unfinished{err: unknown, outcome: "failed", reported: true, park: true})
	if fault.CodeOf(released) != fault.ActionFailed {
		return released
	}
	return unknown
}

// LateCalls reports calls of a worker that has lost its lease. It ignores an epoch that the
// entity has never had, because no holder had it.
func LateCalls(ctx context.Context, e *engine.Engine, t entities.Ticket, calls ...effects.LateCall) {
	at, err := e.Partition(ctx, store.Write)
	if err != nil {
		return
	}
	if now, err := entities.Get(ctx, e, t.Lifecycle, t.ID); err == nil && t.Epoch > now.Claim.Epoch {
		return
	}
	reportLate(ctx, e, at, t, calls)
}
