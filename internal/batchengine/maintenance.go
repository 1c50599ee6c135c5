package batchengine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/store"
)

type cancelItemsArgs struct {
	id    string `arg:"batch"`
	after int64  `arg:"after"`
	limit int    `arg:"room"`
}

type cancelledItems struct {
	applied         bool
	found           string // fine, none, missing, full
	flipped, refund int64
	last, left      int64
}

type laterArgs struct {
	id      string        `arg:"batch"`
	version int64         `arg:"version"`
	delay   time.Duration `arg:"delay"` // below 0: when something happens
	message string        `arg:"error,null"`
}

type due struct {
	workspace, id string
	version       int64
	cancel        bool
}

type sweepArgs struct {
	lease     time.Duration `arg:"lease"`
	limit     int           `arg:"limit"`
	Undoes    []string      `arg:"handlers"`
	artifacts bool          `arg:"artifacts"`
}

// Swept is an item to clean up after, held by who does it.
type Swept struct {
	Shard            int16
	Workspace, Batch string
	Key, State       string
	Sweeps, Epoch    int64
	Input, Output    []byte
	Dirty            bool // it is not only a last look
	Late             bool // somebody may still be at work on it
	Handler          string
	Undo, Artifacts  bool
}

func (s Swept) partition() store.Partition {
	return store.Partition{Shard: s.Shard, Workspace: s.Workspace}
}

type cleanedArgs struct {
	id    string   `arg:"batch"`
	Items [][4]any `arg:"items"`
}

type cleaned struct {
	n    int64
	over bool
}

type uncleanArgs struct {
	id      string        `arg:"batch"`
	key     string        `arg:"key"`
	sweeps  int64         `arg:"sweeps"`
	dirty   bool          `arg:"dirty"`
	delay   time.Duration `arg:"delay"`
	message string        `arg:"error,null"`
}

type renewCleanupArgs struct {
	id     string        `arg:"batch"`
	key    string        `arg:"key"`
	sweeps int64         `arg:"sweeps"`
	lease  time.Duration `arg:"lease"`
}

var (
	flipVerb = store.VerbOf[cancelItemsArgs](store.Decl{Name: "batches.flip", Events: store.HistoryEvents},
		func(a cancelItemsArgs) []string { return []string{row(a.id)} },
		store.Outcome(func(f *cancelledItems) (*bool, []any) {
			return &f.applied, []any{&f.found, &f.flipped, &f.refund, &f.last, &f.left}
		})).
		// Whether anything is left, the next page tells.
		RecoverWith(func(cancelItemsArgs, store.CommitProof) cancelledItems {
			return cancelledItems{applied: true, found: "fine", left: 1}
		}).
		Wakes(func(a cancelItemsArgs) []string { return []string{Maintenance, Progress(a.id)} }).
		Emits(func(a cancelItemsArgs) store.Emission { return emits(a.id, "itemsCancelled") })
	laterVerb = store.VerbOf[laterArgs](store.Decl{Name: "batches.later", Idempotent: true},
		func(a laterArgs) []string { return []string{row(a.id)} }, store.ScanApplied)
	dueVerb = store.NewVerb(store.Decl{Name: "batches.due", Lane: store.Read}, nil, store.IntArg("limit"),
		store.Each(func(x *due) []any { return []any{&x.workspace, &x.id, &x.version, &x.cancel} }))
	sweepVerb = store.VerbOf[sweepArgs](store.Decl{Name: "batches.sweep", Lane: store.Work}, nil,
		store.Each(func(s *Swept) []any {
			return []any{&s.Workspace, &s.Batch, &s.Key, &s.Sweeps, &s.State, &s.Epoch, &s.Input, &s.Output, &s.Dirty, &s.Late, &s.Handler, &s.Undo, &s.Artifacts}
		}))
	renewCleanupVerb = store.VerbOf[renewCleanupArgs](store.Decl{Name: "batches.keep", Lane: store.Vital}, nil, store.ScanValues[time.Time])
	cleanedVerb      = store.VerbOf[cleanedArgs](store.Decl{Name: "batches.cleaned", Idempotent: true},
		func(a cleanedArgs) []string { return []string{row(a.id)} },
		func(c *cleaned, r store.Row) error { return r.Scan(&c.n, &c.over) }).
		Wakes(func(a cleanedArgs) []string { return []string{Progress(a.id)} })
	lockVerb = store.NewVerb(store.Decl{Name: "batches.lock", Idempotent: true},
		func(id string) []string { return []string{row(id)} },
		store.TextArg("batch"), store.ScanApplied)
	uncleanVerb = store.VerbOf[uncleanArgs](store.Decl{Name: "batches.unclean", Idempotent: true},
		func(a uncleanArgs) []string { return []string{row(a.id)} }, store.ScanApplied)
)

// flipPage is how many items a transaction of the teardown flips.
const flipPage = 500

// cancelItems flips what nobody has decided on, page by page, until nothing is left.
func cancelItems(ctx context.Context, d store.Doer, at store.Partition, id string) error {
	for after := int64(0); ; {
		f, err := flipVerb.DoAt(ctx, d, at, cancelItemsArgs{id, after, flipPage})
		switch {
		case err != nil:
			return err
		case f.found == "missing":
			return fault.New(fault.NotFound, "the batch %q cannot be torn down: there is no wallet to refund to", id)
		case f.found == "full":
			return fault.New(fault.Conflict, "the batch %q cannot be torn down: its wallet has no room for the refund", id)
		case f.left <= 0 || f.found == "none":
			_, err := resume(ctx, d, at, "") // there may be enough for others now
			return err
		case f.flipped == 0: // the page began behind what is left
			after = 0
		default:
			after = f.last
		}
	}
}

// longestPause is how long what fails is left alone at the most.
const longestPause = time.Minute

// Advance goes on with what is due in a workspace, or in all on a shard: batches to be torn
// down, and those that might be at their end. It returns how many it looked at. What fails
// is visible on the batch, and tried again.
func Advance(ctx context.Context, d store.Doer, at store.Partition) (int, error) {
	all, err := dueVerb.DoAt(ctx, d, at, sweepLimit)
	var failed error
	for _, x := range all {
		at.Workspace = x.workspace
		failed = errors.Join(failed, advance(ctx, d, at, x))
	}
	return len(all), errors.Join(err, failed)
}

func advance(ctx context.Context, d store.Doer, at store.Partition, x due) error {
	var err error
	if x.cancel {
		err = cancelItems(ctx, d, at, x.id)
	}
	closed := false
	if err == nil {
		closed, err = closeVerb.DoAt(ctx, d, at, moveArgs{id: x.id})
	}
	if err == nil && closed {
		return nil
	}
	all, failed := getVerb.DoAt(ctx, d, at, x.id)
	if failed != nil || len(all) == 0 {
		return errors.Join(err, failed)
	}
	later := laterArgs{id: x.id, version: all[0].Version, delay: -time.Millisecond}
	if err != nil {
		later.delay, later.message = longestPause/12, lease.Plain(err.Error())
	}
	_, failed = laterVerb.DoAt(ctx, d, at, later)
	return errors.Join(err, failed)
}

// Turns asks for the workspaces in which there are items to clean up after, for one name.
var Turns = lease.NewTurns("batches.turns")

// Sweep says what a node can clean up after, and in which workspace.
type Sweep struct {
	At        store.Partition
	Lease     time.Duration
	Limit     int
	Undoes    []string // handlers
	Artifacts bool
}

// Dirty takes items to clean up after.
func Dirty(ctx context.Context, d store.Doer, s Sweep) ([]Swept, error) {
	all, err := sweepVerb.DoAt(ctx, d, s.At, sweepArgs{s.Lease, s.Limit, s.Undoes, s.Artifacts})
	for i := range all {
		all[i].Shard = s.At.Shard
	}
	return all, err
}

// RenewCleanup extends the hold on an item that is cleaned up after.
func RenewCleanup(ctx context.Context, d store.Doer, s Swept, leaseTime time.Duration) error {
	all, err := renewCleanupVerb.DoAt(ctx, d, s.partition(), renewCleanupArgs{s.Batch, s.Key, s.Sweeps, leaseTime})
	if err == nil && len(all) == 0 {
		err = lease.Lost("the item "+s.Key+" to clean up after", s.Sweeps)
	}
	return err
}

// Cleaned notes that items of one batch were cleaned up after. It is [fault.LeaseLost]
// where one of them was another's by then; the others are noted.
func Cleaned(ctx context.Context, d store.Doer, all ...Swept) error {
	list := make([][4]any, len(all))
	for i, s := range all {
		list[i] = [4]any{s.Key, s.Sweeps, store.Bit(s.Late), store.Bit(s.Dirty)}
	}
	c, err := cleanedVerb.DoAt(ctx, d, all[0].partition(), cleanedArgs{all[0].Batch, list})
	if err == nil {
		err = closeAt(ctx, d, all[0].partition(), all[0].Batch, c.over)
	}
	if err == nil && c.n < int64(len(all)) {
		err = lease.Lost("the batch "+all[0].Batch+" to clean up", all[0].Sweeps)
	}
	return err
}

// CleanedWith notes that an item was cleaned up after, and writes what that wants written in
// the same transaction.
func CleanedWith(ctx context.Context, e Engine, s Swept, commits []Commit) error {
	if len(commits) == 0 {
		return Cleaned(ctx, e, s)
	}
	return with(ctx, e, s.partition(), s.Batch, commits, func(ctx context.Context, tx *store.Tx) error { return Cleaned(ctx, tx, s) })
}

// Unclean notes why an item could not be cleaned up after; it is tried again.
func Unclean(ctx context.Context, d store.Doer, s Swept, cause error) error {
	delay := min(time.Second<<min(s.Sweeps, 10), longestPause)
	_, err := uncleanVerb.DoAt(ctx, d, s.partition(), uncleanArgs{s.Batch, s.Key, s.Sweeps, s.Dirty, delay, lease.Plain(cause.Error())})
	return err
}

// ResumeAll resumes what a credit has left PAUSED, in a workspace or in all on a shard.
func ResumeAll(ctx context.Context, d store.Doer, at store.Partition) (int, error) {
	return resume(ctx, d, at, "")
}
