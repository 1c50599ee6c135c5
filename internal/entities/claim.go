package entities

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/refusals"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Phase is the state of an entity's claim.
type Phase string

// The phases.
const (
	Free      Phase = "free"
	Held      Phase = "held"      // a holder works on it until the lease expires
	Due       Phase = "due"       // to be resumed by a node or worker that has the handler
	Uncertain Phase = "uncertain" // until a person resolves it
)

// Claim is an operation on an entity: the current one or, if the phase is free, the last one.
//
// A claim combines a claim status with a lease. It is taken by a compare-and-swap from the status that the step
// leaves; a second caller finds another status or a lease and is refused before anything is done. The operation
// keeps its id until it ends, whichever holder resumes it: its journal is found by that id.
//
// Every end first checks what was begun: begun counts the effects that may have happened, and changes only
// together with the journal, under the lock of this row. So no end can miss an effect, and no effect can begin
// after the end.
type Claim struct {
	Phase     Phase
	Expired   bool // held with an expired lease; set by Get and by a refused claim
	Operation string
	Step      string
	Requester string
	Revert    string
	Input     []byte
	Holder    string
	lease.Lease
	ClaimedAt time.Time
	Begun     int // number of effects that may have happened
	Failures  int
	Crashes   int
	Error     string
	Outcome   string
	Manual    bool // it is never resumed automatically
	// Stage is the next handler of the step, in an operation that was resumed: "" is all of them.
	Stage string
	// Plan is the plan that the operation was claimed with, in an entity that was read: nil if it was claimed by a
	// version that stores no plans.
	Plan *Plan
	// Repeated is set in the result of an end that had already been recorded, by this holder or on its behalf.
	Repeated bool
}

// Choice is the claim status to enter from a status, and the status to revert to.
type Choice struct {
	Into   string `arg:"claim"`
	Revert string `arg:"revert"`
	Plan   *Plan
}

// MarshalJSON encodes the choice as a list.
func (c Choice) MarshalJSON() ([]byte, error) { return json.Marshal([3]any{c.Into, c.Revert, c.Plan}) }

// Plan is the step of an operation as the config had it, for its requester, when it was claimed. The operation
// ends by its plan even if the config changes.
type Plan struct {
	Operation  string `json:"operation"`
	Into       string `json:"into"`              // claim status
	Success    string `json:"success,omitempty"` // status after success
	Failed     string `json:"failed,omitempty"`  // status after a failure; "" is the previous one
	After      string `json:"after,omitempty"`   // the after-effect
	Action     string `json:"action,omitempty"`  // handler of the action
	Validation string `json:"validation,omitempty"`
	Timeout    int64  `json:"timeout,omitempty"` // ms
}

// planIn parses the plan of an operation. It returns nil for another operation's plan: then this one was
// claimed by a version that stores no plans.
func planIn(text, operation string) *Plan {
	var p Plan
	if text == "" || json.Unmarshal([]byte(text), &p) != nil || p.Operation != operation {
		return nil
	}
	return &p
}

// ClaimArgs claims an entity. Choices maps its current status to the claim. Begun is the number of effects that
// begin with the claim.
type ClaimArgs struct {
	Lifecycle     string            `arg:"lifecycle"`
	ID            string            `arg:"entity"`
	Choices       map[string]Choice `arg:"choices"`
	ExpectVersion *int64            `arg:"want"`
	Operation     string            `arg:"operation"`
	Step          string            `arg:"step"`
	Requester     string            `arg:"requester"`
	Input         []byte            `arg:"input,null"`
	Holder        string            `arg:"holder"`
	Lease         time.Duration     `arg:"lease"`
	Manual        bool              `arg:"manual"`
	Begun         int               `arg:"begun"`
	Meta          events.Meta
}

// Ticket identifies a claim for the later calls of its holder.
type Ticket struct {
	Lifecycle string `arg:"lifecycle"`
	ID        string `arg:"entity"`
	Operation string `arg:"operation"`
	Epoch     int64  `arg:"epoch"`
}

// How a claim ends.
const (
	Success = "success"
	Back    = "back" // to the previous status, if nothing was begun
	Park    = "park" // until a person resolves it, if something was begun
)

// EndArgs ends a claim. Results are the effect results that are not journaled yet.
type EndArgs struct {
	Ticket
	How        string        `arg:"how"`
	To         string        `arg:"target,null"` // "": the previous status
	Data       []byte        `arg:"data,null"`
	Results    []Result      `arg:"results"`
	Delay      time.Duration `arg:"delay"`
	MaxRetries int           `arg:"retries"`
	Event      string        `arg:"event"`
	Message    string        `arg:"message,null"`
	Outcome    string        `arg:"outcome"` // by which a repeated end is recognized
	Note       []byte        `arg:"note,null"`
	Claim      string        `arg:"claim"` // the claim status
	After      string        // the after-effect, if there is one
	Meta       events.Meta
}

// Result is the result of an effect.
type Result struct {
	Name    string          `json:"n"`
	Ordinal int             `json:"o"`
	Result  json.RawMessage `json:"r"`
}

// Events that are written in addition to those that the caller names.
const (
	EventClaimed     = "claimed"
	EventInterrupted = "interrupted"
	EventLost        = "lost" // a hand-out that was lost
	EventParked      = "parked"
	EventRecovered   = "recovered"
	EventAdopted     = "adopted"
	EventResumed     = "resumed"
	EventSeen        = "seen" // a status that other code has written to a user's table
	EventQueued      = "queued"
	EventReleased    = "released"
)

var (
	claimVerb = store.VerbOf[ClaimArgs](store.Decl{Name: "entities.claim", Group: true, Events: store.HistoryEvents},
		func(a ClaimArgs) []string { return []string{key(a.Lifecycle, a.ID)} }, scanClaim).
		RecoverWith(func(a ClaimArgs, m store.CommitProof) result { return recovered(m) }).
		Emits(func(a ClaimArgs) store.Emission { return emits(a.Lifecycle, a.ID, EventClaimed) }).
		GuardStatus(func(a ClaimArgs) store.Move {
			m := store.Move{Lifecycle: a.Lifecycle}
			for _, c := range a.Choices {
				m.Into, m.To = append(m.Into, c.Into), append(m.To, c.Revert)
				if c.Plan != nil {
					m.To = append(m.To, c.Plan.Success, c.Plan.Failed)
				}
			}
			return m
		})
	settleVerb = store.VerbOf[EndArgs](store.Decl{Name: "entities.settle", Group: true, Events: store.HistoryEvents},
		func(a EndArgs) []string { return []string{key(a.Lifecycle, a.ID)} }, scanClaim).
		RecoverWith(func(a EndArgs, m store.CommitProof) result { return recovered(m) }).
		Emits(func(a EndArgs) store.Emission {
			if a.How == Success {
				return emits(a.Lifecycle, a.ID, a.Event, After(a.After), EventParked)
			}
			return emits(a.Lifecycle, a.ID, a.Event, EventInterrupted, EventParked)
		}).
		Wakes(func(a EndArgs) []string {
			if a.How == Success || a.Delay > 0 {
				return nil
			}
			return []string{Topic(a.Lifecycle)}
		})
	renewVerb = store.VerbOf[renewArgs](store.Decl{Name: "entities.renew", Lane: store.Vital}, nil, store.ScanValues[time.Time])
)

type renewArgs struct {
	Ticket
	lease   time.Duration `arg:"lease"`
	longest time.Duration `arg:"longest"`
	heard   bool          `arg:"heard"` // the call comes from the holder
}

// After returns the name that stands for an after-effect in an emission. No event has it, but an event of a
// step with the after-effect is matched by it, so that reactions do not depend on which steps a node's config
// has.
func After(handler string) string { return "$after/" + handler }

// Topic returns the topic that is woken when an operation of a lifecycle is due.
func Topic(lifecycle string) string { return "operations/" + lifecycle }

// recovered returns what the event of a command shows: enough to know its outcome.
func recovered(m store.CommitProof) result {
	e := Entity{Version: m.Version, Claim: Claim{Phase: Free}}
	switch m.Name {
	case EventInterrupted, EventLost, EventResumed, EventQueued:
		e.Claim.Phase = Due
	case EventParked:
		e.Claim.Phase = Uncertain
	case EventClaimed, EventAdopted:
		e.Claim.Phase = Held
	}
	return result{true, e}
}

func emits(lifecycle, id string, names ...string) store.Emission {
	return store.Emission{Stream: Stream(lifecycle, id), Names: names}
}

// ResultsJSON encodes results for a statement.
func ResultsJSON(all []Result) string { return store.JSON(all) }

func scanClaim(r *result, row store.Row) error {
	r.applied = row.Applied()
	return scanRow(&r.entity, row)
}

// scanRow scans an entity with its claim, after other columns.
func scanRow(e *Entity, row store.Row, before ...any) error {
	c := &e.Claim
	var phase string
	err := row.Scan(append(before, &e.Status, &e.Version, &e.Data, &e.CreatedAt, &e.UpdatedAt, &phase, &c.Operation, &c.Step, &c.Requester,
		&c.Revert, &c.Input, &c.Holder, &c.Epoch, &c.Until, &c.ClaimedAt, &c.Begun, &c.Failures, &c.Crashes, &c.Error, &c.Outcome, &c.Manual)...)
	c.Phase = Phase(phase)
	if c.Expired = phase == "expired"; c.Expired {
		c.Phase = Held
	}
	return err
}

// scanPlanned scans an entity with its claim and plan, after other columns.
func scanPlanned(e *Entity, row store.Row, before ...any) error {
	var plan string
	err := scanRow(e, row, append(before, &plan)...)
	e.Claim.Plan = planIn(plan, e.Claim.Operation)
	return err
}

// Ticket returns the ticket of the entity's claim.
func (e Entity) Ticket() Ticket {
	return Ticket{Lifecycle: e.Lifecycle, ID: e.ID, Operation: e.Claim.Operation, Epoch: e.Claim.Epoch}
}

// Take claims an entity and returns it as claimed. It returns [fault.ClaimFailed] if the entity is already
// claimed, [fault.InvalidTransition] if no choice names its status, and [fault.Concurrency] if it is at another
// version. In these cases nothing is written, and the entity is returned as it was found.
func Take(ctx context.Context, d store.Doer, a ClaimArgs) (Entity, error) {
	if err := checkClaim(a); err != nil {
		return Entity{}, err
	}
	r, err := claimVerb.Do(ctx, d, a)
	e := named(r.entity, a.Lifecycle, a.ID)
	switch {
	case err != nil:
		return e, err
	case r.applied && e.Claim.Operation == "": // the response was lost
		return retaken(ctx, d, a)
	case r.applied:
		return e, nil
	}
	return e, claimRefusal(a, e)
}

// retaken reads a claim whose response was lost.
func retaken(ctx context.Context, d store.Doer, a ClaimArgs) (Entity, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.Completing)
	defer cancel()
	e, err := Get(ctx, d, a.Lifecycle, a.ID)
	if err == nil && (e.Claim.Operation != a.Operation || e.Claim.Phase != Held) {
		err = lease.Lost(a.Lifecycle+" "+a.ID, e.Claim.Epoch)
	}
	return e, err
}

func checkClaim(a ClaimArgs) error {
	var statuses []string
	for from, c := range a.Choices {
		statuses = append(statuses, from, c.Into, c.Revert)
	}
	if len(statuses) == 0 {
		return fault.New(fault.Validation, "a claim requires at least one status to start from")
	}
	if a.ExpectVersion != nil && *a.ExpectVersion < 0 {
		return fault.New(fault.Validation, "the expected version must be 0 or more, got %d", *a.ExpectVersion)
	}
	err := cmp.Or(checkNames(a.Lifecycle, a.ID, statuses...), CheckLease(a.Lease),
		strictjson.Text("holder", a.Holder, events.MaxName), strictjson.Text("step", a.Step, events.MaxName),
		strictjson.Text("requester", a.Requester, events.MaxName), events.CheckMeta(a.Meta))
	if err == nil && a.Input != nil {
		err = strictjson.Check(a.Input)
	}
	return err
}

// CheckLease refuses an invalid lease duration.
func CheckLease(lease time.Duration) error {
	if lease < time.Millisecond || lease > 24*time.Hour {
		return fault.New(fault.Validation, "a lease must be between 1ms and 24h, got %s", lease)
	}
	return nil
}

func claimRefusal(a ClaimArgs, e Entity) error {
	_, offered := a.Choices[e.Status]
	switch {
	case e.Version == events.None:
		return missing(a.Lifecycle, a.ID)
	case e.Claim.Phase != Free:
		return ClaimFailed(e)
	case offered && a.ExpectVersion != nil && *a.ExpectVersion != e.Version:
		return events.Moved(a.Lifecycle+" "+a.ID, *a.ExpectVersion, e.Version)
	}
	return fault.New(fault.InvalidTransition, "%s %q has status %q, in which step %q cannot be fired", a.Lifecycle, a.ID, e.Status, a.Step).
		With("status", e.Status).With("version", e.Version)
}

// ClaimFailed returns the error of a claim on an entity that is already claimed.
func ClaimFailed(e Entity) *fault.Error {
	f := fault.New(fault.ClaimFailed, "another operation is already in progress: step %q of %s %q, since %s", e.Claim.Step, e.Lifecycle, e.ID,
		clock.Text(e.Claim.ClaimedAt)).
		With("status", e.Status).With("holder", e.Claim.Holder).With("since", e.Claim.ClaimedAt).With("operation", e.Claim.Operation)
	if e.Claim.Phase == Held {
		f = f.With("until", e.Claim.Until)
	}
	if e.Claim.Phase == Uncertain {
		f = f.With("uncertain", true)
	}
	return f
}

// Renew renews a lease, or returns [fault.LeaseLost].
func Renew(ctx context.Context, d store.Doer, at store.Partition, t Ticket, lease time.Duration) (time.Time, error) {
	return renew(ctx, d, at, renewArgs{t, lease, 0, true})
}

// RenewWithin renews the lease of a resumed operation, at most until longest after it was resumed; 0 is as
// [Renew].
func RenewWithin(ctx context.Context, d store.Doer, at store.Partition, t Ticket, lease, longest time.Duration) (time.Time, error) {
	return renew(ctx, d, at, renewArgs{t, lease, longest, true})
}

// Limit makes a lease that was just handed out end after longest. It does not count as a sign of life of the
// holder.
func Limit(ctx context.Context, d store.Doer, at store.Partition, t Ticket, longest time.Duration) (time.Time, error) {
	return renew(ctx, d, at, renewArgs{t, longest, longest, false})
}

func renew(ctx context.Context, d store.Doer, at store.Partition, a renewArgs) (time.Time, error) {
	if err := CheckLease(a.lease); err != nil {
		return time.Time{}, err
	}
	until, err := renewVerb.DoAt(ctx, d, at, a)
	switch {
	case err != nil:
		return time.Time{}, err
	case len(until) == 0:
		return time.Time{}, Lost(ctx, d, at, a.Ticket, "renew", nil)
	}
	return until[0], nil
}

// Lost records that a late holder was refused, and returns its error. found is the entity as it was found, or
// nil.
func Lost(ctx context.Context, d store.Doer, at store.Partition, t Ticket, action string, found *Entity) error {
	try := refusals.Try{Stream: Stream(t.Lifecycle, t.ID), Action: action, Operation: t.Operation, Epoch: t.Epoch}
	if found != nil && found.Version != events.None {
		try.Version, try.Requester = &found.Version, found.Claim.Requester
	}
	return refusals.Note(store.InWorkspace(ctx, at.Workspace), d, try, lease.Lost(t.Lifecycle+" "+t.ID, t.Epoch))
}

// End ends a claim and returns the entity: free, or still claimed if something was begun. Ending again under
// the same epoch with the same outcome writes nothing and returns the same result. If the lease is lost, End
// returns [fault.LeaseLost] and writes nothing.
func End(ctx context.Context, d store.Doer, at store.Partition, a EndArgs) (e Entity, again bool, err error) {
	ctx = store.InWorkspace(ctx, at.Workspace)
	a.Message = lease.Plain(a.Message)
	if err := events.CheckMeta(a.Meta); err != nil {
		return Entity{}, false, err
	}
	if a.Data != nil {
		if err := strictjson.Object(a.Data); err != nil {
			return Entity{}, false, err
		}
	}
	r, err := settleVerb.DoAt(ctx, d, at, a)
	e = named(r.entity, a.Lifecycle, a.ID)
	switch {
	case err != nil:
		return e, false, err
	case r.applied && e.Claim.Operation == "": // the response was lost
		return ended(ctx, d, e), false, nil
	case r.applied:
		return e, false, nil
	case repeated(e, a):
		e.Claim.Repeated = true
		return e, true, nil
	}
	if c := e.Claim; c.Operation == a.Operation && c.Epoch == a.Epoch && c.Phase == Held && e.Status != a.Claim {
		return e, false, fault.New(fault.Concurrency, "%s %q was moved out of claim status %q while it was claimed, so the result of the operation was not recorded: read the entity again", a.Lifecycle, a.ID, a.Claim)
	}
	return e, false, Lost(ctx, d, at, a.Ticket, "settle", &e)
}

// ended reads the result of an end whose response was lost. If it cannot be read, the end is recorded
// nonetheless.
func ended(ctx context.Context, d store.Doer, e Entity) Entity {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.Completing)
	defer cancel()
	if now, err := Get(ctx, d, e.Lifecycle, e.ID); err == nil {
		return now
	}
	return e
}

// repeated reports whether this end was already recorded and the entity has not been claimed since.
func repeated(e Entity, a EndArgs) bool {
	c := e.Claim
	return c.Operation == a.Operation && c.Epoch == a.Epoch && c.Phase == Free && c.Outcome == a.Outcome
}
