package entities

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Lapsed is a hold that has run out.
type Lapsed struct {
	store.Partition
	Ticket
	Begun           int
	Status, Revert  string
	Step, Requester string
	Holder          string
	ClaimedAt       time.Time
	Side            bool
	Plan            *Plan // nil: it was taken by a program that stored none
	Lost            int64 // how many hand-outs in a row are lost by it
}

type freeArgs struct {
	lifecycle string        `arg:"lifecycle"`
	id        string        `arg:"entity"`
	epoch     int64         `arg:"epoch"`
	resume    bool          `arg:"resume"`
	allowed   int           `arg:"allowed"`
	note      []byte        `arg:"note,null"`
	claim     string        `arg:"claim"`
	pause     time.Duration `arg:"pause"` // behind a lost hand-out
}

type adoptArgs struct {
	lifecycle string `arg:"lifecycle"`
	id        string `arg:"entity"`
	operation string `arg:"operation"`
	holder    string `arg:"holder"`
	Choice
	lease time.Duration `arg:"lease"`
}

// UnparkArgs ends the uncertainty of an operation.
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

// Resume is how an uncertain operation goes on, other than by an end.
const Resume = "resume"

type syncArgs struct {
	lifecycle string `arg:"lifecycle"`
	id        string `arg:"entity"`
	status    string `arg:"status"`
}

var (
	expiredVerb = store.NewVerb(store.Decl{Name: "entities.expired", Lane: store.Read}, nil, bindLapsed, scanLapsed)
	overdueVerb = store.NewVerb(store.Decl{Name: "entities.overdue", Lane: store.Read}, nil,
		func(lifecycles []string, args *store.Args) {
			bindLapsed(lifecycles, args)
			args.Int("wait", lease.Timeout.Milliseconds())
		},
		scanLapsed)
	withdrawVerb = store.VerbOf[WithdrawArgs](store.Decl{Name: "entities.withdraw", Group: true, Events: store.HistoryEvents},
		func(a WithdrawArgs) []string { return []string{key(a.Lifecycle, a.ID)} }, scanClaim).
		RecoverWith(func(a WithdrawArgs, m store.CommitProof) result { return recovered(m) }).
		Emits(func(a WithdrawArgs) store.Emission { return emits(a.Lifecycle, a.ID, EventReleased, EventParked) })
	freeVerb = store.VerbOf[freeArgs](store.Decl{Name: "entities.free", Group: true, Events: store.HistoryEvents},
		func(a freeArgs) []string { return []string{key(a.lifecycle, a.id)} }, scanClaim).
		RecoverWith(func(a freeArgs, m store.CommitProof) result { return recovered(m) }).
		Emits(func(a freeArgs) store.Emission {
			return emits(a.lifecycle, a.id, EventRecovered, EventInterrupted, EventLost, EventParked)
		}).
		Wakes(func(a freeArgs) []string { return []string{Topic(a.lifecycle)} })
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
	syncVerb = store.VerbOf[syncArgs](store.Decl{Name: "entities.sync", Events: store.HistoryEvents},
		func(a syncArgs) []string { return []string{key(a.lifecycle, a.id)} }, scanClaim).
		Emits(func(a syncArgs) store.Emission { return emits(a.lifecycle, a.id, EventSeen) })
	resumeVerb = store.NewVerb(store.Decl{Name: "entities.resume", Lane: store.Work}, nil,
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
	straysVerb = store.NewVerb(store.Decl{Name: "entities.strays", Lane: store.Read}, nil,
		func(a straysArgs, args *store.Args) {
			args.Text("lifecycles", store.JSON(a.claims))
			args.Text("after_workspace", a.behind[0])
			args.Text("after_lifecycle", a.behind[1])
			args.Text("after_entity", a.behind[2])
			args.Int("limit", strayPage)
		},
		store.Each(func(s *Stray) []any { return []any{&s.Workspace, &s.Lifecycle, &s.ID, &s.Status} }))
)

// Turns asks for the queues and workspaces in which operations are due.
var Turns = lease.NewTurns("entities.turns")

// ResumeArgs takes operations that are to be resumed, of queues in workspaces, with the leases
// that they are held for.
type ResumeArgs struct {
	Turns  []lease.Turn
	Leases map[string]time.Duration // by queue
	Holder string
	Limit  int
	// Elsewhere says that the holder is not in this process: it is quiet until it is heard of.
	Elsewhere bool
}

// Resumed is an entity that was taken to be resumed.
type Resumed struct {
	Workspace string
	Entity
}

// Stray is an entity that is in a claim status although nobody claimed it.
type Stray struct{ Workspace, Lifecycle, ID, Status string }

type straysArgs struct {
	claims map[string][]string
	behind [3]string
}

// strayPage is how many entities are looked at in one statement.
const strayPage = 2000

// lapseLimit is how many holds one sweep looks at.
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

// Expired returns holds of some lifecycles that have run out, on one shard.
func Expired(ctx context.Context, d store.Doer, shard int16, lifecycles []string) ([]Lapsed, error) {
	all, err := expiredVerb.DoAt(ctx, d, store.Partition{Shard: shard}, lifecycles)
	for i := range all {
		all[i].Shard = shard
	}
	return all, err
}

// Overdue returns operations of some lifecycles that have waited for a worker for longer than their step may take, on one
// shard.
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
	Meta    events.Meta
}

// Withdraw ends an operation that is due, and that nobody holds, and says whether it did:
// the entity goes back, or, if an effect of it may have happened, waits for a person.
func Withdraw(ctx context.Context, d store.Doer, at store.Partition, a WithdrawArgs) (Entity, bool, error) {
	a.Message = lease.Plain(a.Message)
	r, err := withdrawVerb.DoAt(ctx, d, at, a)
	return named(r.entity, a.Lifecycle, a.ID), r.applied, err
}

// Recover frees a hold that has run out, and says whether it did: another may
// have, or its holder may have renewed it. A status other than the claim's was set
// by somebody else, and stays.
func Recover(ctx context.Context, d store.Doer, l Lapsed, claim string, resume bool, maxDeaths int, note []byte) (Entity, bool, error) {
	r, err := freeVerb.DoAt(ctx, d, l.Partition, freeArgs{l.Lifecycle, l.ID, l.Epoch, resume, maxDeaths, note, claim, lease.LostPause(l.Lost, l.ID)})
	return named(r.entity, l.Lifecycle, l.ID), r.applied, err
}

// Adopt holds an entity that is in a claim status although nobody claimed it.
func Adopt(ctx context.Context, d store.Doer, at store.Partition, lifecycle, id string, c Choice, holder string, lease time.Duration) (bool, error) {
	r, err := adoptVerb.DoAt(ctx, d, at, adoptArgs{lifecycle, id, store.NewID().String(), holder, c, lease})
	return r.applied, err
}

// Unpark ends the uncertainty of an operation whose effects are all known. It
// returns [fault.Conflict] where it is not uncertain under this epoch, or something
// of it is unknown still.
func Unpark(ctx context.Context, d store.Doer, at store.Partition, a UnparkArgs) (Entity, error) {
	r, err := unparkVerb.DoAt(ctx, d, at, a)
	e := named(r.entity, a.Lifecycle, a.ID)
	if err == nil && !r.applied {
		err = fault.New(fault.Conflict, "the operation %s is %s, or has effects left that nothing is known of", a.Operation, e.Claim.Phase).
			With("operation", a.Operation).With("phase", string(e.Claim.Phase))
	}
	return e, err
}

// Sync notes the status of a row in a table of the user's own, and returns what is
// noted beside it.
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
	return Entity{}, fault.New(fault.Concurrency, "the %s %q was made by another at the same moment", lifecycle, id)
}

// TakeDue takes operations on a shard that are to be resumed.
func TakeDue(ctx context.Context, d store.Doer, shard int16, a ResumeArgs) ([]Resumed, error) {
	return resumeVerb.DoAt(ctx, d, store.Partition{Shard: shard}, a)
}

// Strays looks at a page of entities, behind one, for those that are in a claim
// status although nobody claimed them. next is where to go on, or nothing at the
// end.
func Strays(ctx context.Context, d store.Doer, shard int16, claims map[string][]string, behind [3]string) (found []Stray, next [3]string, err error) {
	all, err := straysVerb.DoAt(ctx, d, store.Partition{Shard: shard}, straysArgs{claims, behind})
	if err != nil || len(all) == 0 {
		return nil, next, err
	}
	last := all[len(all)-1]
	return all[:len(all)-1], [3]string{last.Workspace, last.Lifecycle, last.ID}, nil
}

// ScanOpen scans an entity with its claim, behind its lifecycle and its id.
func ScanOpen(all *[]Entity, row store.Row) error {
	var e Entity
	err := scanPlanned(&e, row, &e.Lifecycle, &e.ID)
	*all = append(*all, e)
	return err
}
