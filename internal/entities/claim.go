package entities

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Phase is how an entity stands with those who work on it.
type Phase string

// The phases.
const (
	Free      Phase = "free"
	Held      Phase = "held"      // somebody works on it, until the hold runs out
	Due       Phase = "due"       // to be resumed by whoever has the handler
	Uncertain Phase = "uncertain" // until a person says what happened
)

// Claim is an operation on an entity: the one that it is in or, once the phase is
// free again, was in last.
//
// A claim is a status of its own, and a hold. It is taken by a compare-and-swap
// from the status that the step leaves; whoever comes second finds another status,
// or a hold, and is refused before anything is done. The operation keeps its id
// until its end, whoever takes it up: what it journals is found again by that id.
//
// Every end looks first at what was begun: begun counts the effects that may have
// happened, and is changed only together with the journal, under the lock of this
// very row. So no end can miss an effect, and no effect can begin after the end.
type Claim struct {
	Phase     Phase
	Expired   bool // it is held, and the lease has expired; of who looked, or came second
	Operation string
	Step      string
	Requester string
	Revert    string
	Input     []byte
	Holder    string
	lease.Lease
	ClaimedAt time.Time
	Begun     int // effects that may have happened
	Failures  int
	Crashes   int
	Error     string
	Outcome   string
	Manual    bool // nobody resumes it
	// Stage is which of the step's handlers is next, of an operation that was
	// taken up: "" is all of them.
	Stage string
	// Plan is what the operation was taken with, of an entity that was read: nil where a
	// program took it that stored none.
	Plan *Plan
	// Repeated says of the answer to an end that it was recorded before, by this holder or by
	// somebody else for it.
	Repeated bool
}

// Choice is the claim that a status leads into, and where it goes back to.
type Choice struct {
	Into   string `arg:"claim"`
	Revert string `arg:"revert"`
	Plan   *Plan
}

// MarshalJSON makes a list of it.
func (c Choice) MarshalJSON() ([]byte, error) { return json.Marshal([3]any{c.Into, c.Revert, c.Plan}) }

// Plan is what an operation was taken with: its step, as the config had it then, for its
// requester. However the config is changed, the operation ends by its plan.
type Plan struct {
	Operation  string `json:"operation"`
	Into       string `json:"into"`              // the status that it is held in
	Success    string `json:"success,omitempty"` // where it leads
	Failed     string `json:"failed,omitempty"`  // where a failure leads; "" is back
	After      string `json:"after,omitempty"`   // the after-effect
	Action     string `json:"action,omitempty"`  // handlers
	Validation string `json:"validation,omitempty"`
	Timeout    int64  `json:"timeout,omitempty"` // in ms
}

// planIn reads the plan of an operation. One of another operation is none: a program that
// stores no plans took this one.
func planIn(text, operation string) *Plan {
	var p Plan
	if text == "" || json.Unmarshal([]byte(text), &p) != nil || p.Operation != operation {
		return nil
	}
	return &p
}

// ClaimArgs takes an entity into a claim. Choices says into which, by the status
// that it is in. Begun is the number of effects that begin with it.
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

// Ticket is what a holder needs to go on.
type Ticket struct {
	Lifecycle string `arg:"lifecycle"`
	ID        string `arg:"entity"`
	Operation string `arg:"operation"`
	Epoch     int64  `arg:"epoch"`
}

// How a hold is ended.
const (
	Success = "success"
	Back    = "back" // to where it came from, if nothing was begun
	Park    = "park" // until a person looks at it, if something was begun
)

// EndArgs ends a hold. Results are those of effects that are not noted yet.
type EndArgs struct {
	Ticket
	How        string        `arg:"how"`
	To         string        `arg:"target,null"` // "": back
	Data       []byte        `arg:"data,null"`
	Results    []Result      `arg:"results"`
	Delay      time.Duration `arg:"delay"`
	MaxRetries int           `arg:"retries"`
	Event      string        `arg:"event"`
	Message    string        `arg:"message,null"`
	Outcome    string        `arg:"outcome"`
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

// Events that are written besides those that the caller names.
const (
	EventClaimed     = "claimed"
	EventInterrupted = "interrupted"
	EventLost        = "lost" // a hand-out of which nobody was heard
	EventParked      = "parked"
	EventRecovered   = "recovered"
	EventAdopted     = "adopted"
	EventResumed     = "resumed"
	EventSeen        = "seen"
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
	endVerb = store.VerbOf[EndArgs](store.Decl{Name: "entities.end", Group: true, Events: store.HistoryEvents},
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
	heard   bool          `arg:"heard"` // of its holder
}

// After is the name under which an after-effect is marked: no event has it, but what
// a step that has the after-effect writes is known by it, so that what follows does
// not depend on which steps a node's config has.
func After(handler string) string { return "$after/" + handler }

// Topic is what is woken when an operation of a lifecycle is due.
func Topic(lifecycle string) string { return "operations/" + lifecycle }

// recovered is what the event of a command tells: enough to know what became of it.
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

// ResultsJSON is a list of results as the statements take it.
func ResultsJSON(all []Result) string { return store.JSON(all) }

func scanClaim(r *result, row store.Row) error {
	r.applied = row.Applied()
	return scanRow(&r.entity, row)
}

// scanRow scans an entity with its claim, behind other columns.
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

// scanPlanned scans an entity with its claim and the plan of that, behind other columns.
func scanPlanned(e *Entity, row store.Row, before ...any) error {
	var plan string
	err := scanRow(e, row, append(before, &plan)...)
	e.Claim.Plan = planIn(plan, e.Claim.Operation)
	return err
}

// Ticket is what the holder of the claim needs to go on.
func (e Entity) Ticket() Ticket {
	return Ticket{Lifecycle: e.Lifecycle, ID: e.ID, Operation: e.Claim.Operation, Epoch: e.Claim.Epoch}
}

// Take takes an entity into a claim and returns it as it is then. Where somebody
// has it, the error is [fault.ClaimFailed]; where it is at a status that no choice
// names, [fault.InvalidTransition]; at another version, [fault.Concurrency]. Then
// nothing is written, and the entity is returned as it was found.
func Take(ctx context.Context, d store.Doer, a ClaimArgs) (Entity, error) {
	if err := checkClaim(a); err != nil {
		return Entity{}, err
	}
	r, err := claimVerb.Do(ctx, d, a)
	e := named(r.entity, a.Lifecycle, a.ID)
	switch {
	case err != nil:
		return e, err
	case r.applied && e.Claim.Operation == "": // the answer was lost
		return retaken(ctx, d, a)
	case r.applied:
		return e, nil
	}
	return e, claimRefusal(a, e)
}

// retaken reads what a claim is whose answer was lost.
func retaken(ctx context.Context, d store.Doer, a ClaimArgs) (Entity, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.Completing)
	defer cancel()
	e, err := Get(ctx, d, a.Lifecycle, a.ID)
	if err == nil && (e.Claim.Operation != a.Operation || e.Claim.Phase != Held) {
		err = lease.Lost("the "+a.Lifecycle+" "+a.ID, e.Claim.Epoch)
	}
	return e, err
}

func checkClaim(a ClaimArgs) error {
	var statuses []string
	for from, c := range a.Choices {
		statuses = append(statuses, from, c.Into, c.Revert)
	}
	if len(statuses) == 0 {
		return fault.New(fault.Validation, "a claim names the status that it leaves")
	}
	if a.ExpectVersion != nil && *a.ExpectVersion < 0 {
		return fault.New(fault.Validation, "the expected version is %d: an entity's version is 0 or more", *a.ExpectVersion)
	}
	err := cmp.Or(checkNames(a.Lifecycle, a.ID, statuses...), CheckLease(a.Lease),
		strictjson.Text("holder", a.Holder, events.MaxName), strictjson.Text("step", a.Step, events.MaxName),
		strictjson.Text("requester", a.Requester, events.MaxName), events.CheckMeta(a.Meta))
	if err == nil && a.Input != nil {
		err = strictjson.Check(a.Input)
	}
	return err
}

// CheckLease refuses a lease that is none.
func CheckLease(lease time.Duration) error {
	if lease < time.Millisecond || lease > 24*time.Hour {
		return fault.New(fault.Validation, "a lease is a millisecond to a day, not %s", lease)
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
	return fault.New(fault.InvalidTransition, "the %s %q is %q, where %q cannot be done", a.Lifecycle, a.ID, e.Status, a.Step).
		With("status", e.Status).With("version", e.Version)
}

// ClaimFailed is the error of who comes second.
func ClaimFailed(e Entity) *fault.Error {
	f := fault.New(fault.ClaimFailed, "another operation is already in progress: %q of the %s %q, since %s", e.Claim.Step, e.Lifecycle, e.ID,
		e.Claim.ClaimedAt.Format(time.RFC3339Nano)).
		With("status", e.Status).With("holder", e.Claim.Holder).With("since", e.Claim.ClaimedAt).With("operation", e.Claim.Operation)
	if e.Claim.Phase == Held {
		f = f.With("until", e.Claim.Until)
	}
	if e.Claim.Phase == Uncertain {
		f = f.With("uncertain", true)
	}
	return f
}

// Renew extends a hold, or returns [fault.LeaseLost].
func Renew(ctx context.Context, d store.Doer, at store.Partition, t Ticket, lease time.Duration) (time.Time, error) {
	return renew(ctx, d, at, renewArgs{t, lease, 0, true})
}

// RenewWithin extends the hold of an operation that was resumed, at the most until so
// long after that; 0 is as [Renew].
func RenewWithin(ctx context.Context, d store.Doer, at store.Partition, t Ticket, lease, longest time.Duration) (time.Time, error) {
	return renew(ctx, d, at, renewArgs{t, lease, longest, true})
}

// Limit has a hold that was just handed out end so long after that. Its holder was not heard of by it.
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
		return time.Time{}, lost(a.Ticket)
	}
	return until[0], nil
}

func lost(t Ticket) *fault.Error { return lease.Lost("the "+t.Lifecycle+" "+t.ID, t.Epoch) }

// End ends a hold and returns the entity as it is then: free, or still in its
// claim where something was begun. Ending again under the epoch that ended it, the
// same way, writes nothing, and gives the same answer. Where the hold is lost, the
// error is [fault.LeaseLost], and nothing is written.
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
	r, err := endVerb.DoAt(ctx, d, at, a)
	e = named(r.entity, a.Lifecycle, a.ID)
	switch {
	case err != nil:
		return e, false, err
	case r.applied && e.Claim.Operation == "": // the answer was lost
		return ended(ctx, d, e), false, nil
	case r.applied:
		return e, false, nil
	case repeated(e, a):
		e.Claim.Repeated = true
		return e, true, nil
	}
	if c := e.Claim; c.Operation == a.Operation && c.Epoch == a.Epoch && c.Phase == Held && e.Status != a.Claim {
		return e, false, fault.New(fault.Concurrency, "the %s %q was taken out of %q by somebody else while it was claimed: what was done is not recorded", a.Lifecycle, a.ID, a.Claim)
	}
	return e, false, lost(a.Ticket)
}

// ended reads what became of an end whose answer was lost. Where that cannot be
// read, it is recorded all the same.
func ended(ctx context.Context, d store.Doer, e Entity) Entity {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.Completing)
	defer cancel()
	if now, err := Get(ctx, d, e.Lifecycle, e.ID); err == nil {
		return now
	}
	return e
}

// repeated says whether this very end was recorded before, and nobody has taken the
// entity since.
func repeated(e Entity, a EndArgs) bool {
	c := e.Claim
	return c.Operation == a.Operation && c.Epoch == a.Epoch && c.Phase == Free && c.Outcome == a.Outcome
}
