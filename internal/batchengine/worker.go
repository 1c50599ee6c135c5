package batchengine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/meter"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Engine runs commands and transactions, and knows the shards in use.
type Engine interface {
	store.Doer
	Update(context.Context, func(context.Context, *store.Tx) error) error
	Shards(context.Context) ([]int16, error)
}

// Commit adds writes to the transaction that ends an item.
type Commit func(context.Context, *store.Tx) error

// Worker is a loop of a node that takes items of some handlers in all workspaces, and runs a body for each.
type Worker struct {
	Engine Engine
	Hub    *wake.Hub
	Log    *slog.Logger
	Name   string // the holder
	// Handlers returns the handlers to take items for. Kind is their declared kind.
	Handlers func() []string
	Kind     string
	// Topics wake the worker.
	Topics []string
	// Body does the work. Its context ends when the lease is lost or a cancel is
	// requested.
	Body func(context.Context, Taken) (output []byte, commits []Commit, err error)
	// MaxConcurrency is the number of bodies that run at once, shared by the
	// workspaces. With ByHandler the handlers of a workspace get shares too.
	MaxConcurrency int
	ByHandler      bool
	Lease          time.Duration // [lease.DefaultDuration] if not set
	// Backoff is the pause after the n-th failure; the default is that of [clock.Backoff].
	Backoff func(failures int64) time.Duration

	settler settler
}

// Run works until ctx ends, and then waits for the running bodies.
func (w *Worker) Run(ctx context.Context) {
	var bodies sync.WaitGroup
	defer bodies.Wait()
	again := "items/" + w.Name + "/" + w.Kind // wakes the worker when capacity becomes free
	capacity := lease.NewCapacity(w.MaxConcurrency, func() bool { return store.SingleWorkspace(w.Engine) }, func() { w.Hub.WakeHere(again) })
	if w.ByHandler {
		capacity.ByHandler()
	}
	recent := make(map[int16]*Recent)
	p := wake.Poller{Hub: w.Hub, Topics: append([]string{again}, w.Topics...), Log: w.Log, WorkKinds: w.WorkKinds, Poll: func(ctx context.Context) (bool, error) {
		return w.poll(ctx, capacity, recent, &bodies)
	}}
	p.Run(ctx)
}

// WorkKinds returns the work that the worker serves.
func (w *Worker) WorkKinds() []wake.WorkKind { return wake.WorkKinds(wake.Batch, w.Handlers()...) }

// poll takes items as far as there is capacity, and starts a body for each.
func (w *Worker) poll(ctx context.Context, capacity *lease.Capacity, recent map[int16]*Recent, bodies *sync.WaitGroup) (found bool, err error) {
	handlers := w.Handlers()
	if len(handlers) == 0 {
		return false, nil
	}
	shards, err := w.Engine.Shards(ctx)
	if err != nil {
		return false, err
	}
	for _, shard := range shards {
		if err := capacity.Wait(ctx); err != nil {
			return found, err
		}
		if recent[shard] == nil {
			recent[shard] = new(Recent)
		}
		w.gather(ctx, shard, recent[shard], capacity)
		taken, err := w.take(ctx, Ask{Handlers: handlers, Limit: 1000, All: true, Shard: shard, Room: capacity, Recent: recent[shard]})
		found = found || len(taken) > 0
		for _, t := range taken {
			bodies.Go(func() {
				defer capacity.Free(t.share(), 1)
				w.Serve(ctx, t)
			})
		}
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// gather waits until items that are being settled have freed their capacity, so that they are replaced in one take. It waits for
// the current call, and for the one that begins when that ends: a take of the batch would wait for either in any case. It waits
// only for a moment, because a call that hangs, for example for a locked batch, must not keep other batches from being served.
func (w *Worker) gather(ctx context.Context, shard int16, recent *Recent, capacity *lease.Capacity) {
	ctx, cancel := context.WithTimeout(ctx, recentFor)
	defer cancel()
	for range 2 {
		for _, b := range recent.get() {
			w.settler.await(ctx, batchRef{store.Partition{Shard: shard, Workspace: b.Workspace}, b.ID})
		}
		yield(capacity.Left)
	}
}

func (t Taken) share() lease.Share { return lease.Share{Workspace: t.Workspace, Handler: t.Handler} }

// Step does one item of a workspace before it returns.
func (w *Worker) Step(ctx context.Context, at store.Partition) (found bool, err error) {
	taken, err := w.take(store.InWorkspace(ctx, at.Workspace), Ask{Handlers: w.Handlers(), Limit: 1})
	for _, t := range taken {
		w.Serve(ctx, t)
	}
	return len(taken) > 0, err
}

// take calls [Take] and finishes even if the worker stops meanwhile: the items of an
// interrupted take would count as crashed.
func (w *Worker) take(ctx context.Context, a Ask) ([]Taken, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.lease())
	defer cancel()
	a.Kind, a.Holder, a.Lease = w.Kind, w.Name, w.lease()
	return Take(ctx, w.Engine, a)
}

func (w *Worker) lease() time.Duration {
	if w.Lease > 0 {
		return w.Lease
	}
	return lease.DefaultDuration
}

// Serve runs a body under its lease and records the result. Neither the lease nor
// the recording depends on the worker's own context, which ends when it stops.
func (w *Worker) Serve(ctx context.Context, t Taken) {
	ctx = store.InWorkspace(ctx, t.Workspace)
	var cancelled atomic.Bool // the lease was lost or a cancel requested while the body ran
	k := lease.Renewer{Lease: w.lease(), Timeout: t.Timeout, Renew: func(ctx context.Context) error {
		r, err := Renew(ctx, w.Engine, t, w.lease())
		if err == nil && r.CancelRequested { // the item is refunded whatever its result
			err = lost(t)
		}
		if fault.CodeOf(err) == fault.LeaseLost {
			cancelled.Store(true)
		}
		return err
	}}
	defer w.Hub.Watch(CancelTopic(t.Batch), wake.Cancelled(wake.CancelledBatch, t.partition(), t.Batch), k.RenewNow)()
	output, commits, err := w.body(k.Start(ctx), t)
	stopping := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.lease())
	defer cancel()
	err = w.record(ctx, t, output, commits, err, stopping, &cancelled) // under the lease: an item may wait for others of its batch
	k.Stop()
	if err != nil && !(cancelled.Load() && fault.CodeOf(err) == fault.LeaseLost) {
		w.Log.Warn("failed to record the end of an item", "workspace", t.Workspace, "batch", t.Batch, "item", t.Key, "epoch", t.Epoch, "error", err)
	}
}

// settlePause is the pause between attempts to settle an item while the database is
// unavailable.
const settlePause = 250 * time.Millisecond

// record records the result of a body. A body that gave up because the worker stops
// has not failed, and neither has one that was cancelled; an output that cannot be stored is a failure.
func (w *Worker) record(ctx context.Context, t Taken, output []byte, commits []Commit, failure error, stopping bool, cancelled *atomic.Bool) error {
	if failure == nil {
		err := w.settle(ctx, t, output, commits)
		for fault.CodeOf(err) == fault.Unavailable && clock.Wait(ctx, settlePause) == nil { // retry: the work is paid for
			err = w.settle(ctx, t, output, commits)
		}
		if err == nil {
			w.Hub.Tally.Items.Add(1)
		}
		if code := fault.CodeOf(err); err == nil || code == fault.LeaseLost || code == fault.Unavailable || code == fault.OutcomeUnknown {
			return err
		}
		failure = fmt.Errorf("the output cannot be stored: %w", err)
	}
	if stopping && errors.Is(failure, context.Canceled) {
		return Release(ctx, w.Engine, t, 0)
	}
	pause := clock.Backoff(0, 0, 0, t.Failures+1)
	if w.Backoff != nil {
		pause = w.Backoff(t.Failures + 1)
	}
	level, message := slog.LevelWarn, "item failed"
	if cancelled.Load() && errors.Is(failure, context.Canceled) {
		level, message = slog.LevelInfo, "item stopped: its batch is cancelled, or its lease was lost"
	}
	w.Log.Log(ctx, level, message, "workspace", t.Workspace, "batch", t.Batch, "item", t.Key, "operation", t.Operation(), "epoch", t.Epoch, "failures", t.Failures, "error", failure)
	_, err := Fail(ctx, w.Engine, t, failure.Error(), pause, fault.IsNonRetryable(failure))
	return err
}

func (w *Worker) settle(ctx context.Context, t Taken, output []byte, commits []Commit) error {
	if len(commits) == 0 {
		return w.settler.settle(ctx, w.Engine, Finished{t, output})
	}
	return SettleWith(ctx, w.Engine, t, output, commits)
}

// SettleWith settles an item and runs commits in the same transaction. The commits
// take effect once, even if it is called again.
func SettleWith(ctx context.Context, e Engine, t Taken, output []byte, commits []Commit) error {
	err := with(ctx, e, t.partition(), t.Batch, commits, func(ctx context.Context, tx *store.Tx) error {
		return SettleIn(ctx, tx, t, output)
	})
	if fault.CodeOf(err) == fault.LeaseLost { // outside of the rolled-back transaction, record that this holder has finished
		_, _ = settle(ctx, e, t, output)
	}
	return err
}

// SettleIn settles an item in the transaction of writes that must take effect once. If the item was settled before, it
// returns [fault.LeaseLost], and the transaction must not be committed.
func SettleIn(ctx context.Context, tx *store.Tx, t Taken, output []byte) error {
	ended, err := Settle(ctx, tx, t, output)
	if err == nil && !ended.applied {
		err = lost(t)
	}
	return err
}

// with writes an end and then the program's commits in one transaction. It locks the
// wallet first: the program may write to it, and every other statement locks the
// wallet before the batch.
func with(ctx context.Context, e Engine, at store.Partition, batch string, commits []Commit, end Commit) error {
	return e.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		_, err := lockWalletVerb.DoAt(ctx, tx, at, batch)
		if err == nil {
			err = end(ctx, tx)
		}
		for _, f := range commits {
			if err == nil {
				err = runCommit(ctx, tx, f)
			}
		}
		return err
	})
}

// runCommit runs a write of the program and turns a panic into an error.
func runCommit(ctx context.Context, tx *store.Tx, f Commit) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a WriteTx function panicked: %v", p)
		}
	}()
	return f(ctx, tx)
}

// body runs the user's code and turns a panic into an error.
func (w *Worker) body(ctx context.Context, t Taken) (output []byte, commits []Commit, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler panicked: %v", p)
		}
	}()
	defer meter.Of(w.Engine).Kind(meter.Item).Begin()()
	return w.Body(ctx, t)
}
