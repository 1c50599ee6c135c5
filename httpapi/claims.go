package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/httpapi/internal/shapes"
	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/internal/claimtoken"
	"github.com/holdfast-go/holdfast/internal/effects"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/lifecycleengine"
	"github.com/holdfast-go/holdfast/internal/quota"
	"github.com/holdfast-go/holdfast/internal/remote"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/timeline"
	"github.com/holdfast-go/holdfast/stream"
	"github.com/holdfast-go/holdfast/wire"
)

func (a *API) claimRoutes() {
	by := workers
	add(a, route{Method: http.MethodPost, Path: "lifecycles/{name}/entities/{id}/claims", ID: "claimStep", Tag: "claims", Summary: "Claim a step manually.",
		Roles: by, Status: http.StatusCreated, Idempotency: table.AsOperation, Adds: []quota.Kind{quota.Work, quota.Storage},
		More: "The caller runs the step's body itself."}, claimStep)
	add(a, route{Method: http.MethodGet, Path: "claims", ID: "listClaims", Tag: "claims", Summary: "List the workspace's claims.", Roles: readers, Filter: "ClaimFilter"}, listClaims)
	add(a, route{Method: http.MethodPost, Path: "claims/{token}/renew", ID: "renewClaim", Tag: "claims", Summary: "Renew a claim.", Roles: by, Idempotency: table.UnderLease}, renewClaim)
	add(a, route{Method: http.MethodPost, Path: "claims/{token}/settle", ID: "settleClaim", Tag: "claims", Summary: "Settle a claim with an outcome.", Roles: by, Idempotency: table.UnderLease, Frees: true,
		More: "Settling the claim again with the same outcome returns the same result."}, settleClaim)
	add(a, route{Method: http.MethodPost, Path: "claims/{token}/release", ID: "releaseClaim", Tag: "claims", Summary: "Release a claim.", Roles: by, Idempotency: table.UnderLease, Frees: true, More: "The claim ends with the outcome failure."}, releaseClaim)
	add(a, route{Method: http.MethodPost, Path: "claims/{token}/effects", ID: "journalEffect", Tag: "claims", Summary: "Journal an effect under a claim.", Roles: by, Idempotency: table.UnderLease,
		More: "Without a result or notDone, the call records the intent; otherwise it records the outcome."}, journalEffect)
	add(a, route{Method: http.MethodGet, Path: "operations", ID: "listOperations", Tag: "operations", Summary: "List operations that have not ended, and operations with contradictions: effect calls by holders that had lost their lease.", Roles: readers, Filter: "OperationFilter"}, listOperations)
	add(a, route{Method: http.MethodPost, Path: "operations/{id}/resolve", ID: "resolveOperation", Tag: "operations", Summary: "Resolve an uncertain operation.", Roles: operators, Idempotency: table.UnderLease, Frees: true}, resolveOperation)
	add(a, route{Method: http.MethodGet, Path: "operations/{id}", ID: "getOperation", Tag: "operations", Summary: "Show an operation, even if it has ended.", Roles: readers,
		More: "An ended operation of an entity is found by its effects and in the history of the entity. If it has no effects and its history is no longer retained, the response is NOT_FOUND."}, getOperation)
	add(a, route{Method: http.MethodPost, Path: "operations/{id}/release", ID: "releaseOperation", Tag: "operations", Summary: "Release a leased operation: its holder can write nothing more.", Roles: operators, Idempotency: table.UnderLease, Frees: true,
		More: "Releasing an operation of a lifecycle ends it, even if it is due and has no holder. A released step of a run becomes due again. If an effect may have happened, the response is EFFECT_UNRESOLVED."}, releaseOperation)
	add(a, route{Method: http.MethodPost, Path: "operations/{id}/withdraw", ID: "withdrawOperation", Tag: "operations", Summary: "Withdraw an operation that is due and not leased.", Roles: operators, Idempotency: table.UnderLease, Frees: true,
		More: "If one of its effects may have happened, the operation becomes uncertain and must be resolved."}, withdrawOperation)
	add(a, route{Method: http.MethodPost, Path: "operations/{id}/acknowledge", ID: "acknowledgeContradictions", Tag: "operations", Summary: "Acknowledge an operation's contradictions.", Roles: operators, Idempotency: table.UnderLease,
		More: "The response lists the contradictions that remain."}, acknowledge)
}

type claimIn struct {
	Name string `path:"name"`
	ID   string `path:"id"`
	Body wire.NewClaim
}

func claimStep(c *call, in *claimIn) (wire.Claimed, error) {
	b := in.Body
	l, err := c.lifecycle(in.Name)
	if err == nil {
		err = c.mayActAs(b.Requester)
	}
	if err == nil {
		err = c.unrestricted()
	}
	if err != nil {
		return wire.Claimed{}, err
	}
	begun, answer, err := c.begin(l, in.ID, claimedAs)
	if answer != nil || err != nil {
		claimed, _ := answer.(wire.Claimed)
		return claimed, err
	}
	o := c.fireOptions(b.Input, b.ExpectedVersion, span(b.LeaseMs))
	o.Begin = begun
	claim, err := l.Claim(c.ctx(), c.api.engine, in.ID, b.StepKey, b.Requester, o)
	if answer, came, failed := c.answerOfTwin(l, in.ID, err, claimedAs); came {
		claimed, _ := answer.(wire.Claimed)
		return claimed, failed
	}
	if err != nil {
		return wire.Claimed{}, err
	}
	return c.token(l, claim)
}

// token issues a token for a claim. If that fails, it releases the claim, because nothing could
// settle it.
func (c *call) token(l *named, claim *lifecycleengine.Claim) (wire.Claimed, error) {
	o := claim.Entity.Claimed
	t := claimtoken.New()
	err := claimtoken.Put(c.ctx(), c.api.engine, t, claimtoken.Claim{Lifecycle: l.Name(), Entity: claim.Entity.ID, Operation: o.ID, Epoch: o.Epoch, Requester: o.Requester})
	if err != nil {
		_, _ = claim.End(context.WithoutCancel(c.ctx()), lifecycleengine.Failure, "failed to store its token") // if this fails, the janitor releases it
		return wire.Claimed{}, err
	}
	return wire.Claimed{Claim: wire.Token{Token: t, Epoch: o.Epoch, Until: shapes.At(o.Until)}, Entity: shapes.Entity(l.Name(), claim.Entity)}, nil
}

// claimedAs answers a repeated claim with the same idempotency key: with another token of the same
// claim, while it is held. The first token is not stored.
func claimedAs(c *call, l *named, id, operation string, f lifecycleengine.OperationOutcome) (any, error) {
	e, err := l.Get(c.ctx(), c.api.engine, id)
	if err != nil {
		return nil, err
	}
	if !f.Running || e.Claimed == nil || e.Claimed.ID != operation {
		return nil, fault.New(fault.Conflict, "the claim that was taken with this idempotency key has ended (outcome %q): use a new idempotency key to claim again", f.Outcome).With("outcome", f.Outcome)
	}
	claim, err := l.Held(c.ctx(), c.api.engine, id, operation, e.Claimed.Epoch)
	if err != nil {
		return nil, err
	}
	claimed, err := c.token(l, claim)
	c.replayed(http.StatusCreated)
	return claimed, err
}

// held returns the claim of a token. A claim whose requester the key may not act for is reported as
// not found.
func (c *call) held(token string) (*named, *lifecycleengine.Claim, error) {
	t, err := claimtoken.Find(c.ctx(), c.api.engine, token)
	if err != nil {
		return nil, nil, err
	}
	if !c.key.Speaks(t.Requester) {
		return nil, nil, fault.New(fault.NotFound, "no claim has this token: use the token that the claim request returned")
	}
	l, err := c.lifecycle(t.Lifecycle)
	if err != nil {
		return nil, nil, err
	}
	claim, err := l.Held(c.ctx(), c.api.engine, t.Entity, t.Operation, t.Epoch)
	return l, claim, err
}

// byToken is [call.held] for calls that end or renew a manual claim. A key that is restricted to handlers may not.
func (c *call) byToken(token string) (*named, *lifecycleengine.Claim, error) {
	if err := c.unrestricted(); err != nil {
		return nil, nil, err
	}
	return c.held(token)
}

// lateClaim records a call by a holder that has lost its claim.
func (c *call) lateClaim(token string, err error, call effects.LateCall) {
	if fault.CodeOf(err) != fault.LeaseLost {
		return
	}
	if t, err := claimtoken.Find(c.ctx(), c.api.engine, token); err == nil && c.key.Speaks(t.Requester) {
		lifecycleengine.LateCalls(c.ctx(), c.api.engine, entities.Ticket{Lifecycle: t.Lifecycle, ID: t.Entity, Operation: t.Operation, Epoch: t.Epoch}, call)
	}
}

// noteGone records the refusal of a holder whose claim had ended before the call, and returns err.
func (c *call) noteGone(token, action string, err error) error {
	if fault.CodeOf(err) != fault.LeaseLost {
		return err
	}
	t, failed := claimtoken.Find(c.ctx(), c.api.engine, token)
	if failed != nil {
		return err
	}
	return lifecycleengine.NoteGone(c.ctx(), c.api.engine, entities.Ticket{Lifecycle: t.Lifecycle, ID: t.Entity, Operation: t.Operation, Epoch: t.Epoch}, t.Requester, action, err)
}

type renewClaimIn struct {
	Token string     `path:"token"`
	Body  wire.Renew `optional:"true"`
}

// renewFor is the default duration of a renewal: the same as the lease of a claim without
// stuck_after.
const renewFor = 5 * time.Minute

func renewClaim(c *call, in *renewClaimIn) (wire.Renewed, error) {
	_, claim, err := c.byToken(in.Token)
	if err != nil {
		return wire.Renewed{}, c.noteGone(in.Token, "renew", err)
	}
	lease := span(in.Body.LeaseMs)
	if lease == 0 {
		lease = renewFor
	}
	until, err := claim.Renew(c.ctx(), lease)
	return wire.Renewed{Until: shapes.At(until)}, err
}

type settleIn struct {
	Token string `path:"token"`
	Body  wire.Settle
}

func settleClaim(c *call, in *settleIn) (wire.Settled, error) {
	if len(in.Body.Events) > 0 && c.key.Role == keys.Worker {
		return wire.Settled{}, fault.New(fault.Forbidden, "an API key with the role %s cannot append events: settle without events, or use a key with the role %s", keys.Worker, keys.Operate).With("pointer", "/events")
	}
	if len(in.Body.Events) > 0 {
		if err := c.mayAppendWithSettle(); err != nil {
			return wire.Settled{}, err
		}
	}
	var e rawEntity
	l, claim, err := c.byToken(in.Token)
	if err == nil {
		e, err = settle(c, l.Name(), claim, in.Body)
	}
	if err != nil {
		settled, err := c.settledBefore(in.Token, in.Body.Outcome, err)
		return settled, c.noteGone(in.Token, "settle", err)
	}
	return wire.Settled{Entity: shapes.Entity(l.Name(), e)}, nil
}

// settledBefore answers a settle after the claim has ended: with the current entity if the claim ended
// with the same outcome, whatever its data and events, and with err otherwise.
func (c *call) settledBefore(token, outcome string, err error) (wire.Settled, error) {
	if fault.CodeOf(err) != fault.LeaseLost {
		return wire.Settled{}, err
	}
	if outcome == string(lifecycleengine.Success) { // its body acted, even if a person has since resolved the operation with the same outcome
		c.lateClaim(token, err, effects.LateCall{Name: effects.Body, State: effects.Done})
	}
	t, failed := claimtoken.Find(c.ctx(), c.api.engine, token)
	if failed != nil || !c.key.Speaks(t.Requester) {
		return wire.Settled{}, err
	}
	was, failed := lifecycleengine.Ended(c.ctx(), c.api.engine, entities.Ticket{Lifecycle: t.Lifecycle, ID: t.Entity, Operation: t.Operation, Epoch: t.Epoch})
	same := map[string]string{"success": lifecycleengine.EndedSuccess, "failure": lifecycleengine.EndedFailed, "invalid": lifecycleengine.EndedInvalid}[outcome]
	if failed != nil || was.How == "" || was.How != same {
		return wire.Settled{}, err
	}
	l, failed := c.lifecycle(t.Lifecycle)
	if failed != nil {
		return wire.Settled{}, err
	}
	e, failed := l.Get(c.ctx(), c.api.engine, t.Entity)
	if failed != nil {
		return wire.Settled{}, err
	}
	return wire.Settled{Entity: shapes.Entity(l.Name(), e)}, nil
}

func settle(c *call, name string, claim *lifecycleengine.Claim, b wire.Settle) (rawEntity, error) {
	o := lifecycleengine.Outcome(b.Outcome)
	if o != lifecycleengine.Success {
		if len(b.Data) > 0 || len(b.Events) > 0 {
			return claim.Entity, fault.New(fault.Validation, "data and events are allowed only with the outcome success, got %.80q", b.Outcome)
		}
		return claim.End(c.ctx(), o, b.Message)
	}
	return claim.SettlePatch(c.ctx(), b.Data, c.emit(name+"/"+claim.Entity.ID, b.Events))
}

// emit appends events to their streams, in the transaction of a settle. The default stream is the
// entity's own.
func (c *call) emit(own string, all []wire.SettleEvent) func(context.Context, *store.Tx) error {
	if len(all) == 0 {
		return nil
	}
	return func(ctx context.Context, tx *store.Tx) error {
		for _, e := range all {
			if _, err := stream.Append(ctx, tx, cmp.Or(e.Stream, own), stream.Any, stream.Event{Name: e.Name, Data: orEmpty(e.Data), Actor: c.actor()}); err != nil {
				return err
			}
		}
		return nil
	}
}

type releaseIn struct {
	Token string       `path:"token"`
	Body  wire.Release `optional:"true"`
}

func releaseClaim(c *call, in *releaseIn) (wire.Settled, error) {
	l, claim, err := c.byToken(in.Token)
	if err != nil {
		return wire.Settled{}, c.noteGone(in.Token, "settle", err)
	}
	e, err := claim.End(c.ctx(), lifecycleengine.Failure, in.Body.Reason)
	return wire.Settled{Entity: shapes.Entity(l.Name(), e)}, err
}

type effectIn struct {
	Token string `path:"token"`
	Body  wire.EffectCall
}

// journalEffect records the intent or the outcome of an effect.
func journalEffect(c *call, in *effectIn) (wire.EffectState, error) {
	b := in.Body
	if err := checkEffect(b); err != nil {
		return wire.EffectState{}, err
	}
	effect := remote.Effect{Name: b.Name, Ordinal: b.Ordinal, Result: b.Result, NotDone: b.NotDone}
	_, claim, err := c.held(in.Token)
	if err != nil {
		if len(b.Result) > 0 && strictjson.Check(b.Result) == nil {
			c.lateClaim(in.Token, err, effects.LateCall{Name: b.Name, Ordinal: b.Ordinal, State: effects.Done, Result: b.Result})
		}
		return wire.EffectState{}, c.noteGone(in.Token, effect.Action(), err)
	}
	x, err := claim.Effect(c.ctx(), effect)
	return wire.EffectState{Key: x.Key, State: x.State, Result: x.Result}, err
}

type listClaimsIn struct {
	State string `query:"state" arg:"phase" doc:"List only claims in this state: held, due or uncertain."`
	paged
}

func checkState(state string) error {
	switch state {
	case "", "held", "due", "uncertain":
		return nil
	}
	return fault.New(fault.Validation, "state must be held, due or uncertain, got %q", state)
}

// operations reads a page of operations.
func (c *call) operations(state string, from paged) (found []lifecycleengine.Pending, next string, err error) {
	if err := checkState(state); err != nil {
		return nil, "", err
	}
	p, err := c.page(from)
	if err != nil {
		return nil, "", err
	}
	return readPage(c, p, func(ctx context.Context, after string, limit int) ([]lifecycleengine.Pending, error) {
		return lifecycleengine.Operations(ctx, c.api.engine, state, after, limit)
	}, func(x lifecycleengine.Pending) string { return x.ID })
}

func listClaims(c *call, in *listClaimsIn) (wire.List[wire.HeldClaim], error) {
	found, next, err := c.operations(in.State, in.paged)
	all := make([]wire.HeldClaim, len(found))
	for i, x := range found {
		all[i] = wire.HeldClaim{Lifecycle: x.Lifecycle, Entity: x.Entity, Status: x.Status, Phase: x.Phase, Claim: shapes.Claim(x.Operation)}
	}
	return listed(c, all, next), err
}

// handlerOf returns the handler of an operation. Lookups are cached by lifecycle, step, requester
// and status.
func (c *call) handlerOf(o lifecycleengine.Operation) string {
	if o.Handler != "" {
		return o.Handler
	}
	key := [4]string{o.Lifecycle, o.Step, o.Requester, o.Status}
	name, known := c.handlers[key]
	if !known {
		name = lifecycleengine.HandlerOf(c.ctx(), c.api.engine, o)
		if c.handlers == nil {
			c.handlers = make(map[[4]string]string)
		}
		c.handlers[key] = name
	}
	return name
}

type resolveIn struct {
	ID   string `path:"id"`
	Body wire.Resolve
}

func resolveOperation(c *call, in *resolveIn) (wire.Resolved, error) {
	known := make([]effects.Resolution, len(in.Body.Effects))
	for i, x := range in.Body.Effects {
		known[i] = effects.Resolution{Name: x.Name, Ordinal: x.Ordinal, Result: x.Result}
		if x.Happened != nil {
			known[i].State = effects.StateOf(*x.Happened)
		}
		err := effects.CheckCall(strings.TrimPrefix(x.Name, "$"), x.Ordinal)
		if err == nil {
			err = known[i].Check()
		}
		if err != nil {
			return wire.Resolved{}, strictjson.Within(err, "/effects/"+strconv.Itoa(i))
		}
	}
	if operation, ok := runengine.OperationOf(in.ID); ok {
		return resolveStep(c, operation, known, in.Body.Outcome)
	}
	if _, err := lifecycleengine.Resolve(c.ctx(), c.api.engine, in.ID, known, lifecycleengine.Outcome(in.Body.Outcome), lease.Intervention{Actor: c.actor()}); err != nil {
		return wire.Resolved{}, err
	}
	return resolved(c, in.ID)
}

type withdrawIn struct {
	ID   string        `path:"id"`
	Body wire.Withdraw `optional:"true"`
}

func withdrawOperation(c *call, in *withdrawIn) (wire.Resolved, error) {
	if _, ok := runengine.OperationOf(in.ID); ok {
		return wire.Resolved{}, fault.New(fault.Conflict, "operation %s is a step of a run: cancel the run instead", in.ID)
	}
	if _, err := lifecycleengine.Withdraw(c.ctx(), c.api.engine, in.ID, lease.Intervention{Reason: in.Body.Reason, Actor: c.actor()}); err != nil {
		return wire.Resolved{}, err
	}
	return resolved(c, in.ID)
}

type operationIn struct {
	ID string `path:"id"`
}

func getOperation(c *call, in *operationIn) (wire.Operation, error) {
	l := &operationList{call: c}
	id := in.ID
	if operation, ok := runengine.OperationOf(id); ok {
		id = operation
	}
	w, err := l.operation(c.ctx(), effects.Contradiction{Operation: id})
	switch {
	case err != nil || w.State != "ended" || w.Subject != "":
	case w.Kind == "action":
		err = c.addHistory(&w)
	case len(w.Effects) == 0:
		err = fault.New(fault.NotFound, "operation %q does not exist", in.ID)
	}
	if err != nil {
		return wire.Operation{}, err
	}
	return l.addContradictions(c.ctx(), w)
}

// addHistory adds what the history of the entity says of an operation that has ended.
func (c *call) addHistory(w *wire.Operation) error {
	o, err := timeline.FindOperation(c.ctx(), c.api.engine, w.ID)
	if fault.CodeOf(err) == fault.NotFound && len(w.Effects) > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	lifecycle, entity := o.Subject()
	ended := shapes.Event(o.Last)
	w.Subject, w.Since, w.Epoch, w.Ended = lifecycle+"/"+entity, shapes.At(o.First.At), max(w.Epoch, o.Epoch), &ended
	w.Handler = c.handlerOf(lifecycleengine.Operation{OperationFacts: lifecycleengine.OperationFacts{Lifecycle: lifecycle, Step: o.Step, Requester: o.Requester, Status: o.Status}})
	return nil
}

type releaseOperationIn struct {
	ID   string                `path:"id"`
	Body wire.ReleaseOperation `optional:"true"`
}

func releaseOperation(c *call, in *releaseOperationIn) (wire.Resolved, error) {
	r := lease.Intervention{Reason: in.Body.Reason, Actor: c.actor(), Epoch: in.Body.Epoch}
	if operation, ok := runengine.OperationOf(in.ID); ok {
		l, err := runengine.LocalOf(c.api.engine).Executor.ReleaseHeld(c.ctx(), c.api.engine, operation, r)
		if err != nil || l.Step.Status != runengine.Running { // it has ended
			return wire.Resolved{}, err
		}
		w, err := c.stepOperation(c.ctx(), &l, "due")
		return wire.Resolved{Operation: &w}, err
	}
	if _, err := lifecycleengine.Release(c.ctx(), c.api.engine, in.ID, r); err != nil {
		return wire.Resolved{}, err
	}
	return resolved(c, in.ID)
}

// resolved returns the operation after a manual change, or nothing if it has ended.
func resolved(c *call, id string) (wire.Resolved, error) {
	now, err := lifecycleengine.Find(c.ctx(), c.api.engine, id)
	if fault.CodeOf(err) == fault.NotFound { // it has ended
		return wire.Resolved{}, nil
	}
	if err != nil {
		return wire.Resolved{}, err
	}
	w := operationOf(c, now.Operation, now.Effects)
	return wire.Resolved{Operation: &w}, nil
}
