package batchengine

import (
	"context"
	"errors"
	"sync"
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
	found           string // fine, none (no such batch is being cancelled), missing (no wallet), full (the refund would overflow it)
	flipped, refund int64  // how many items were cancelled, and their charges
	last, left      int64  // the number of the last of them, and how many items are left
}

type scheduleCheckArgs struct {
	id      string        `arg:"batch"`
	version int64         `arg:"version"`
	delay   time.Duration `arg:"delay"` // negative: wait for the next change
	message string        `arg:"error,null"`
}

type due struct {
	workspace, id string
	version       int64
	cancel        bool // a cancel was requested
}

type takeCleanupArgs struct {
	lease     time.Duration `arg:"lease"`
	limit     int           `arg:"limit"`
	kind      string        `arg:"kind"`
	Undoes    []string      `arg:"handlers"`
	urls      bool          `arg:"urls"`
	artifacts bool          `arg:"artifacts"`
}

// Swept is an item to clean up, leased to the node that does it.
type Swept struct {
	Shard            int16
	Workspace, Batch string
	Key, State       string
	Sweeps           int64 // the epoch of the cleanup's lease: an odd number, even after the holder has given it back
	Epoch            int64 // of the item
	Input, Output    []byte
	Dirty            bool // false for the last sweep, a timeout after the cleanup, for what a late holder has left
	Late             bool // a worker may still work on the item
	Handler          string
	Undo, Artifacts  bool      // the options of its batch
	Until            time.Time // the end of the lease
}

// attempt returns how often the cleanup was taken, at most: an expired lease counts like one that was given back.
func (s Swept) attempt() int { return int(s.Sweeps+1) / 2 }

// pause returns the pause after a failed attempt.
func (s Swept) pause() time.Duration { return min(time.Second<<min(s.attempt(), 10), maxPause) }

func (s Swept) partition() store.Partition {
	return store.Partition{Shard: s.Shard, Workspace: s.Workspace}
}

type markCleanedArgs struct {
	id    string   `arg:"batch"`
	Items [][4]any `arg:"items"`
}

type cleaned struct {
	n    int64 // items recorded
	over bool  // the batch may have ended
}

type markCleanupFailedArgs struct {
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
	dirty  bool          `arg:"dirty"`
	lease  time.Duration `arg:"lease"`
}

type deleteItemsArgs struct {
	id    string `arg:"batch"`
	after string `arg:"after"` // the key
	limit int    `arg:"room"`
}

type deletedItems struct {
	applied bool
	n       int    // items deleted
	last    string // key of the last one
	over    bool   // none is left, and the batch is done
}

var (
	listPrunableVerb = store.NewVerb(store.Decl{Name: "batches.list_prunable", Lane: store.Read}, nil, store.IntArg("limit"),
		store.Each(func(x *due) []any { return []any{&x.workspace, &x.id} }))
	deleteItemsVerb = store.VerbOf[deleteItemsArgs](store.Decl{Name: "batches.delete_items", Idempotent: true},
		func(a deleteItemsArgs) []string { return []string{row(a.id)} },
		store.Outcome(func(x *deletedItems) (*bool, []any) { return &x.applied, []any{&x.n, &x.last, &x.over} }))
	cancelItemsVerb = store.VerbOf[cancelItemsArgs](store.Decl{Name: "batches.cancel_items", Events: store.HistoryEvents},
		func(a cancelItemsArgs) []string { return []string{row(a.id)} },
		store.Outcome(func(f *cancelledItems) (*bool, []any) {
			return &f.applied, []any{&f.found, &f.flipped, &f.refund, &f.last, &f.left}
		})).
		// The next page finds out whether anything is left.
		RecoverWith(func(cancelItemsArgs, store.CommitProof) cancelledItems {
			return cancelledItems{applied: true, found: "fine", left: 1}
		}).
		Wakes(func(a cancelItemsArgs) []string { return []string{Maintenance, ProgressTopic(a.id)} }).
		Emits(func(a cancelItemsArgs) store.Emission { return emits(a.id, "itemsCancelled") })
	scheduleCheckVerb = store.VerbOf[scheduleCheckArgs](store.Decl{Name: "batches.schedule_check", Idempotent: true},
		func(a scheduleCheckArgs) []string { return []string{row(a.id)} }, store.ScanApplied)
	listDueVerb = store.NewVerb(store.Decl{Name: "batches.list_due", Lane: store.Read}, nil, store.IntArg("limit"),
		store.Each(func(x *due) []any { return []any{&x.workspace, &x.id, &x.version, &x.cancel} }))
	takeCleanupVerb = store.VerbOf[takeCleanupArgs](store.Decl{Name: "batches.take_cleanup", Lane: store.Work}, nil,
		store.Each(func(s *Swept) []any {
			return []any{&s.Workspace, &s.Batch, &s.Key, &s.Sweeps, &s.State, &s.Epoch, &s.Input, &s.Output, &s.Dirty, &s.Late, &s.Handler, &s.Undo, &s.Artifacts, &s.Until}
		}))
	renewCleanupVerb = store.VerbOf[renewCleanupArgs](store.Decl{Name: "batches.renew_cleanup", Lane: store.Vital}, nil, store.ScanValues[time.Time])
	markCleanedVerb  = store.VerbOf[markCleanedArgs](store.Decl{Name: "batches.mark_cleaned", Idempotent: true},
		func(a markCleanedArgs) []string { return []string{row(a.id)} },
		func(c *cleaned, r store.Row) error { return r.Scan(&c.n, &c.over) }).
		Wakes(func(a markCleanedArgs) []string { return []string{ProgressTopic(a.id)} })
	lockWalletVerb = store.NewVerb(store.Decl{Name: "batches.lock_wallet", Idempotent: true},
		func(id string) []string { return []string{row(id)} },
		store.TextArg("batch"), store.ScanApplied)
	markCleanupFailedVerb = store.VerbOf[markCleanupFailedArgs](store.Decl{Name: "batches.mark_cleanup_failed", Idempotent: true},
		func(a markCleanupFailedArgs) []string { return []string{row(a.id)} }, store.ScanApplied)
)

// cancelPage is the number of items that one transaction of the teardown cancels.
const cancelPage = 500

// cancelItems cancels the taken items without a decision, page by page, until none is left.
func cancelItems(ctx context.Context, d store.Doer, at store.Partition, id string) error {
	for after := int64(0); ; {
		f, err := cancelItemsVerb.DoAt(ctx, d, at, cancelItemsArgs{id, after, cancelPage})
		switch {
		case err != nil:
			return err
		case f.found == "missing":
			return fault.New(fault.NotFound, "batch %q cannot be torn down, because the wallet for its refund does not exist: restore the wallet", id)
		case f.found == "full":
			return fault.New(fault.Conflict, "batch %q cannot be torn down, because the refund would exceed the wallet's maximum balance: reduce the balance", id)
		case f.left <= 0 || f.found == "none":
			_, err := resume(ctx, d, at, "") // the refund may pay for paused batches
			return err
		case f.flipped == 0: // the remaining items are before the page
			after = 0
		default:
			after = f.last
		}
	}
}

// pruneBatches is from how many batches a sweep deletes items.
const pruneBatches = 50

// Pruner deletes the items of ended batches that are past their retention. The zero value is ready to use, and remembers where the next page
// of a batch begins: a page from the beginning would walk over all deleted rows that are not vacuumed yet. Safe for concurrent use; several
// nodes may prune at once.
type Pruner struct {
	mu    sync.Mutex
	after map[[2]string]string // the last key, by workspace and batch
}

// Sweep deletes up to about size items, in a workspace or in all on a shard. It returns how many items it deleted, and whether there may be
// more. A batch that fails does not stop the others.
func (p *Pruner) Sweep(ctx context.Context, d store.Doer, at store.Partition, size int) (n int, more bool, err error) {
	all, err := listPrunableVerb.DoAt(ctx, d, at, pruneBatches)
	if err != nil {
		return 0, false, err
	}
	var failed error
	moved := false // a batch is not due any more
	for _, x := range all {
		if n >= size {
			return n, true, failed
		}
		deleted, over, err := p.prune(ctx, d, store.Partition{Shard: at.Shard, Workspace: x.workspace}, x.id, size)
		n, moved, failed = n+deleted, moved || over, errors.Join(failed, err)
		more = more || err == nil && !over
	}
	return n, more && n > 0 || moved && len(all) == pruneBatches, failed
}

// prune deletes a page of items, and reports whether the batch is done.
func (p *Pruner) prune(ctx context.Context, d store.Doer, at store.Partition, id string, size int) (n int, over bool, err error) {
	key := [2]string{at.Workspace, id}
	p.mu.Lock()
	a := deleteItemsArgs{id, p.after[key], size}
	p.mu.Unlock()
	gone, err := deleteItemsVerb.DoAt(ctx, d, at, a)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil || !gone.applied { // another node deletes them
		delete(p.after, key)
		return 0, false, err
	}
	if p.after == nil {
		p.after = make(map[[2]string]string)
	}
	if p.after[key] = gone.last; gone.last == "" { // done, or begin again
		delete(p.after, key)
	}
	return gone.n, gone.over, nil
}

// maxPause is the maximum pause after a failed cleanup.
const maxPause = time.Minute

// Advance continues the due batches of a workspace, or of all on a shard: it tears
// down cancelled batches and ends finished ones. It returns the number of due
// batches. A failure is recorded on the batch and retried.
func Advance(ctx context.Context, d store.Doer, at store.Partition) (int, error) {
	all, err := listDueVerb.DoAt(ctx, d, at, sweepLimit)
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
		closed, err = finishVerb.DoAt(ctx, d, at, moveArgs{id: x.id})
	}
	if err == nil && closed {
		return nil
	}
	all, failed := getVerb.DoAt(ctx, d, at, x.id)
	if failed != nil || len(all) == 0 {
		return errors.Join(err, failed)
	}
	later := scheduleCheckArgs{id: x.id, version: all[0].Version, delay: -time.Millisecond}
	if err != nil {
		later.delay, later.message = maxPause/12, lease.Plain(err.Error()) // in 5 seconds
	}
	_, failed = scheduleCheckVerb.DoAt(ctx, d, at, later)
	return errors.Join(err, failed)
}

// Turns lists the workspaces that have items to clean up.
var Turns = lease.NewTurns("batches.list_turns")

// Sweep selects the items that a node can clean up, and their workspace.
type Sweep struct {
	At        store.Partition
	Lease     time.Duration
	Limit     int
	Kind      string   // "worker" selects only items that workers undo
	Undoes    []string // the handlers whose items it can undo
	URLs      bool     // also items that handlers at URLs undo
	Artifacts bool
}

// Dirty leases items to clean up.
func Dirty(ctx context.Context, d store.Doer, s Sweep) ([]Swept, error) {
	all, err := takeCleanupVerb.DoAt(ctx, d, s.At, takeCleanupArgs{s.Lease, s.Limit, s.Kind, s.Undoes, s.URLs, s.Artifacts})
	for i := range all {
		all[i].Shard = s.At.Shard
	}
	return all, err
}

// RenewCleanup extends the lease of an item that is being cleaned up.
func RenewCleanup(ctx context.Context, d store.Doer, s Swept, leaseTime time.Duration) (until time.Time, err error) {
	all, err := renewCleanupVerb.DoAt(ctx, d, s.partition(), renewCleanupArgs{s.Batch, s.Key, s.Sweeps, s.Dirty, leaseTime})
	if err != nil {
		return until, err
	}
	if len(all) == 0 {
		return until, lease.Lost("the cleanup of item "+s.Key, s.Sweeps)
	}
	return all[0], nil
}

// Cleaned records that items of one batch were cleaned up. It returns
// [fault.LeaseLost] if the lease of one of them was lost; the others are recorded.
func Cleaned(ctx context.Context, d store.Doer, all ...Swept) error {
	list := make([][4]any, len(all))
	for i, s := range all {
		list[i] = [4]any{s.Key, s.Sweeps, store.Bit(s.Late), store.Bit(s.Dirty)}
	}
	c, err := markCleanedVerb.DoAt(ctx, d, all[0].partition(), markCleanedArgs{all[0].Batch, list})
	if err == nil {
		err = finishIfOver(ctx, d, all[0].partition(), all[0].Batch, c.over)
	}
	if err == nil && c.n < int64(len(all)) {
		err = lease.Lost("the cleanup of batch "+all[0].Batch, all[0].Sweeps)
	}
	return err
}

// CleanedWith records that an item was cleaned up and runs commits, in one transaction.
func CleanedWith(ctx context.Context, e Engine, s Swept, commits []Commit) error {
	if len(commits) == 0 {
		return Cleaned(ctx, e, s)
	}
	return with(ctx, e, s.partition(), s.Batch, commits, func(ctx context.Context, tx *store.Tx) error { return Cleaned(ctx, tx, s) })
}

// Unclean records why the cleanup of an item failed; it is retried.
func Unclean(ctx context.Context, d store.Doer, s Swept, cause error) error {
	_, err := delayCleanup(ctx, d, s, s.pause(), lease.Plain(cause.Error()))
	return err
}

// delayCleanup ends the lease of a cleanup, which is due again after the delay. It reports whether the lease was still held.
func delayCleanup(ctx context.Context, d store.Doer, s Swept, delay time.Duration, why string) (bool, error) {
	return markCleanupFailedVerb.DoAt(ctx, d, s.partition(), markCleanupFailedArgs{s.Batch, s.Key, s.Sweeps, s.Dirty, delay, why})
}

// ResumeAll resumes the PAUSED batches that their wallets can pay for, in a
// workspace or in all on a shard.
func ResumeAll(ctx context.Context, d store.Doer, at store.Partition) (int, error) {
	return resume(ctx, d, at, "")
}
