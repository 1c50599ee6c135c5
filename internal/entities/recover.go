package entities

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/meter"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Lapsed is a claim whose lease has expired or, from [Overdue], an operation that has waited too long.
type Lapsed struct {
	store.Partition
	Ticket
	Begun           int
	Status, Revert  string
	Step, Requester string
	Holder          string
	ClaimedAt       time.Time
	Side            bool  // the entity is a row of a user's table
	Plan            *Plan // nil: claimed by a version that stores no plans
	Lost            int64 // consecutive lost hand-outs, including this one
}

type releaseExpiredArgs struct {
	lifecycle string        `arg:"lifecycle"`
	id        string        `arg:"entity"`
	epoch     int64         `arg:"epoch"`
	resume    bool          `arg:"resume"`
	allowed   int           `arg:"allowed"` // crashes
	note      []byte        `arg:"note,null"`
	claim     string        `arg:"claim"` // the claim status
	pause     time.Duration `arg:"pause"` // after a lost hand-out
}

type adoptArgs struct {
	lifecycle string `arg:"lifecycle"`
	id        string `arg:"entity"`
	operation string `arg:"operation"`
	holder    string `arg:"holder"`
	Choice
	lease time.Duration `arg:"lease"`
}

// UnparkArgs resolves an uncertain operation.
type UnparkArgs struct {
	Ticket
	How     string `arg:"how"` // "resume", Success or Back
	To      string `arg:"target,null"`
	Event   string `arg:"event"`
	Outcome string `arg:"outcome"`
	Note    []byte `arg:"note,null"`
	After   string // the after-effect, if there is one
	Meta    events.Meta
}

// Resume resolves an uncertain operation by resuming it instead of ending it.
const Resume = "resume"

type syncArgs struct {
	lifecycle string `arg:"lifecycle"`
	id        string `arg:"entity"`
	status    string `arg:"status"`
}

var (
	expiredVerb = store.NewVerb(store.Decl{Name: "entities.list_expired", Lane: store.Read}, nil, bindLapsed, scanLapsed)
	overdueVerb = store.NewVerb(store.Decl{Name: "entities.list_overdue", Lane: store.Read}, nil,
		func(lifecycles []string, args *store.Args) {
			bindLapsed(lifecycles, args)
			args.Int("wait", lease.Timeout.Milliseconds())
		},
		scanLapsed)
	withdrawVerb = store.VerbOf[WithdrawArgs](store.Decl{Name: "entities.withdraw", Group: true, Events: store.HistoryEvents},
		func(a WithdrawArgs) []string { return []string{key(a.Lifecycle, a.ID)} }, scanClaim).
		RecoverWith(func(a WithdrawArgs, m store.CommitProof) result { return recovered(m) }).
		Emits(func(a WithdrawArgs) store.Emission { return emits(a.Lifecycle, a.ID, EventReleased, EventParked) })
	releaseExpiredVerb = store.VerbOf[releaseExpiredArgs](store.Decl{Name: "entities.release_expired", Group: true, Events: store.HistoryEvents},
		func(a releaseExpiredArgs) []string { return []string{key(a.lifecycle, a.id)} }, scanClaim).
		RecoverWith(func(a releaseExpiredArgs, m store.CommitProof) result { return recovered(m) }).
		Emits(func(a releaseExpiredArgs) store.Emission {
			return emits(a.lifecycle, a.id, EventRecovered, EventInterrupted, EventLost, EventParked)
		}).
		Wakes(func(a releaseExpiredArgs) []string { return []string{Topic(a.lifecycle)} })
	adoptVerb = store.VerbOf[adoptArgs](store.Decl{Name: "entities.adopt", Group: true, Events: store.HistoryEvents},
		func(a adoptArgs) []string { return []string{key(a.lifecycle, a.id)} }, scanClaim).
		RecoverWith(func(a adoptArgs, m store.CommitProof) result { return recovered(m) }).
		Emits(func(a adoptArgs) store.Emission { return emits(a.lifecycle, a.id, EventAdopted) }).
		GuardStatus(func(a adoptArgs) store.Move {
			return store.Move{Lifecycle: a.lifecycle, To: []string{a.Revert}, Stray: a.Into}
		})
	unparkVerb = store.VerbOf[UnparkArgs](store.Decl{Name: "entities.unpark", Group: true, Events: store.HistoryEvents},
		func(a UnparkArgs) []string { return []string{key(a.Lifecycle, a.ID)} }, scanClaim).
		RecoverWith(func(a UnparkArgs, m store.CommitProof) result { return recovered(m) }).
		Emits(func(a UnparkArgs) store.Emission {
			return emits(a.Lifecycle, a.ID, a.Event, EventResumed, After(a.After))
		}).
		Wakes(func(a UnparkArgs) []string { return []string{Topic(a.Lifecycle)} })
	syncVerb = store.VerbOf[syncArgs](store.Decl{Name: "entities.sync_status", Events: store.HistoryEvents},
		func(a syncArgs) []string { return []string{key(a.lifecycle, a.id)} }, scanClaim).
		Emits(func(a syncArgs) store.Emission { return emits(a.lifecycle, a.id, EventSeen) })
	takeDueVerb = store.NewVerb(store.Decl{Name: "entities.take_due", Lane: store.Work}, nil,
		func(a ResumeArgs, args *store.Args) {
			list := make([][3]any, len(a.Turns))
			for i, t := range a.Turns {
				list[i] = [3]any{t.Name, a.Leases[t.Name].Milliseconds(), t.Workspace}
			}
			args.Text("queues", store.JSON(list))
			args.Text("holder", a.Holder)
			args.Int("limit", int64(a.Limit))
			args.Int("quiet", store.Bit(a.Elsewhere))
		},
		func(all *[]Resumed, row store.Row) error {
			var r Resumed
			err := scanPlanned(&r.Entity, row, &r.Workspace, &r.Lifecycle, &r.ID, &r.Claim.Stage)
			*all = append(*all, r)
			return err
		})
	listMissingClaimsVerb = store.NewVerb(store.Decl{Name: "entities.list_missing_claims", Lane: store.Read}, nil,
		func(a listMissingClaimsArgs, args *store.Args) {
			args.Text("lifecycles", store.JSON(a.claims))
			args.Text("after_workspace", a.after[0])
			args.Text("after_lifecycle", a.after[1])
			args.Text("after_entity", a.after[2])
			args.Int("limit", strayPage)
		},
		store.Each(func(s *Stray) []any { return []any{&s.Workspace, &s.Lifecycle, &s.ID, &s.Status} }))
)

// Turns is the query for the queues and workspaces in which operations are due.
var Turns = lease.NewTurns("entities.list_turns")

// ResumeArgs claims operations to resume from queues in workspaces, with the lease duration of each queue.
type ResumeArgs struct {
	Turns  []lease.Turn
	Leases map[string]time.Duration // by queue
	Holder string
	Limit  int
	// Elsewhere says that the holder is not in this process: it is silent until it writes under its epoch.
	Elsewhere bool
}

// leaseOf returns the lease of an operation: that of its lifecycle's queue, or that of a worker, who has one for all handlers.
func (a ResumeArgs) leaseOf(lifecycle string) time.Duration {
	if d, ok := a.Leases[QueueOf(lifecycle)]; ok {
		return d
	}
	for _, d := range a.Leases {
		return d
	}
	return 0
}

// Resumed is an entity that was claimed to resume its operation.
type Resumed struct {
	Workspace string
	Entity
}

// Stray is an entity in a claim status without a claim.
type Stray struct{ Workspace, Lifecycle, ID, Status string }

type listMissingClaimsArgs struct {
	claims map[string][]string // the claim statuses, by lifecycle
	after  [3]string
}

// strayPage is how many entities one statement checks.
const strayPage = 2000

// lapseLimit is how many claims one sweep reads.
const lapseLimit = 500

func bindLapsed(lifecycles []string, args *store.Args) {
	args.Text("lifecycles", store.JSON(lifecycles))
	args.Int("limit", lapseLimit)
}

func scanLapsed(all *[]Lapsed, row store.Row) error {
	var l Lapsed
	var plan string
	err := row.Scan(&l.Workspace, &l.Lifecycle, &l.ID, &l.Epoch, &l.Begun, &l.Status, &l.Revert, &l.Operation, &l.Step, &l.Requester,
		&l.Holder, &l.ClaimedAt, &l.Side, &plan, &l.Lost)
	l.Plan = planIn(plan, l.Operation)
	*all = append(*all, l)
	return err
}

// Expired returns claims of the lifecycles whose lease has expired, in a workspace or in all on a shard.
func Expired(ctx context.Context, d store.Doer, at store.Partition, lifecycles []string) ([]Lapsed, error) {
	all, err := expiredVerb.DoAt(ctx, d, at, lifecycles)
	for i := range all {
		all[i].Shard = at.Shard
	}
	return all, err
}

// Overdue returns operations of the lifecycles that have waited for a worker longer than their step may take,
// on one shard.
func Overdue(ctx context.Context, d store.Doer, shard int16, lifecycles []string) ([]Lapsed, error) {
	all, err := overdueVerb.DoAt(ctx, d, store.Partition{Shard: shard}, lifecycles)
	for i := range all {
		all[i].Shard = shard
	}
	return all, err
}

// WithdrawArgs withdraws an operation that is due.
type WithdrawArgs struct {
	Ticket
	Outcome string `arg:"outcome"`
	Message string `arg:"message,null"`
	Claim   string `arg:"claim"` // the claim status
	// Release also ends a lease, and refuses an operation with an effect that may have happened.
	Release bool `arg:"release"`
	Meta    events.Meta
}

// Withdraw ends an operation that is due and has no holder, and reports whether it did. The entity returns to its
// previous status or, if an effect may have happened, waits for manual resolution. With Release, Withdraw also ends an
// operation that has a holder, but none with an effect that may have happened.
func Withdraw(ctx context.Context, d store.Doer, at store.Partition, a WithdrawArgs) (Entity, bool, error) {
	a.Message = lease.Plain(a.Message)
	r, err := withdrawVerb.DoAt(ctx, d, at, a)
	return named(r.entity, a.Lifecycle, a.ID), r.applied, err
}

// Recover releases an expired lease, and reports whether it did: another node may have released it, or its
// holder may have renewed it. A status other than the claim status was set by another writer and stays.
func Recover(ctx context.Context, d store.Doer, l Lapsed, claim string, resume bool, maxCrashes int, note []byte) (Entity, bool, error) {
	r, err := releaseExpiredVerb.DoAt(ctx, d, l.Partition, releaseExpiredArgs{l.Lifecycle, l.ID, l.Epoch, resume, maxCrashes, note, claim, lease.LostPause(l.Lost, l.ID)})
	return named(r.entity, l.Lifecycle, l.ID), r.applied, err
}

// Adopt takes a lease on an entity that is in a claim status without a claim.
func Adopt(ctx context.Context, d store.Doer, at store.Partition, lifecycle, id string, c Choice, holder string, lease time.Duration) (bool, error) {
	r, err := adoptVerb.DoAt(ctx, d, at, adoptArgs{lifecycle, id, store.NewID().String(), holder, c, lease})
	return r.applied, err
}

// Unpark resolves an uncertain operation whose effects are all known. It returns [fault.Conflict] if the
// operation is not uncertain under this epoch, or if an effect is still unknown.
func Unpark(ctx context.Context, d store.Doer, at store.Partition, a UnparkArgs) (Entity, error) {
	r, err := unparkVerb.DoAt(ctx, d, at, a)
	e := named(r.entity, a.Lifecycle, a.ID)
	if err == nil && !r.applied {
		text := "operation %s was resolved or changed concurrently: read it again"
		if e.Claim.Operation == a.Operation && e.Claim.Phase == Uncertain {
			text = "operation %s has effects whose outcome is unknown: resolve these effects first"
		}
		err = fault.New(fault.Conflict, text, a.Operation).
			With("operation", a.Operation).With("phase", string(e.Claim.Phase))
	}
	return e, err
}

// Sync records the status of a row in a user's table, and returns what is stored beside it.
func Sync(ctx context.Context, d store.Doer, lifecycle, id, status string) (Entity, error) {
	if err := checkNames(lifecycle, id, status); err != nil {
		return Entity{}, err
	}
	for range 3 {
		r, err := syncVerb.Do(ctx, d, syncArgs{lifecycle, id, status})
		if err != nil || r.entity.Version != events.None {
			return named(r.entity, lifecycle, id), err
		}
	}
	return Entity{}, fault.New(fault.Concurrency, "%s %q was created concurrently: try again", lifecycle, id)
}

// TakeDue claims operations on a shard that are to be resumed.
func TakeDue(ctx context.Context, d store.Doer, shard int16, a ResumeArgs) ([]Resumed, error) {
	all, err := takeDueVerb.DoAt(ctx, d, store.Partition{Shard: shard}, a)
	w := meter.Of(d).Kind(meter.Operation)
	for i := range all {
		c := &all[i].Claim
		if w.Take(c.Failures + c.Crashes + 1); c.Failures+c.Crashes == 0 { // otherwise it was due after a pause
			w.Waited(all[i].UpdatedAt, c.Until, a.leaseOf(all[i].Lifecycle))
		}
	}
	return all, err
}

// Strays checks a page of entities of a workspace, or of all on a shard, starting after one of them, for those in a claim status without a claim.
// next is the start of the next page, or empty at the end.
func Strays(ctx context.Context, d store.Doer, at store.Partition, claims map[string][]string, after [3]string) (found []Stray, next [3]string, err error) {
	all, err := listMissingClaimsVerb.DoAt(ctx, d, at, listMissingClaimsArgs{claims, after})
	if err != nil || len(all) == 0 {
		return nil, next, err
	}
	last := all[len(all)-1] // only says where the page ends
	return all[:len(all)-1], [3]string{last.Workspace, last.Lifecycle, last.ID}, nil
}

// ScanOpen scans an entity with its claim, after its lifecycle and id.
func ScanOpen(all *[]Entity, row store.Row) error {
	var e Entity
	err := scanPlanned(&e, row, &e.Lifecycle, &e.ID)
	*all = append(*all, e)
	return err
}
