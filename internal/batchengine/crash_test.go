package batchengine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
	"github.com/holdfast-go/holdfast/internal/wallets"
	"github.com/holdfast-go/holdfast/stream"
)

// crasher is a batch, and the engine that works on it.
type crasher struct {
	ctx   context.Context
	e     *holdfast.Engine
	world *holdfasttest.World
}

// parts returns the kind of the items. The second item always fails, the others succeed and record that in a stream with
// their end.
func (c crasher) parts() []holdfast.Part {
	return []holdfast.Part{batch.Define("h", func(ctx context.Context, i *batch.Item[any]) (int, error) {
		if err := c.world.Call(ctx, "work", i.Key); err != nil {
			return 0, err
		}
		if i.Key == "k001" {
			return 0, errors.New("no")
		}
		i.WriteTx(func(ctx context.Context, tx holdfast.Tx) error { return record(ctx, tx, i.Key) })
		return 1, nil
	}, batch.Options{})}
}

func record(ctx context.Context, d holdfast.Doer, key string) error {
	_, err := stream.Append(ctx, d, "did/"+key, stream.Any, stream.Event{Name: "did"})
	return err
}

// fund creates the wallet with a number of points.
func (c crasher) fund(points int64) error {
	if _, err := wallets.Put(c.ctx, engine.Of(c.e), "w", false); err != nil {
		return err
	}
	if points == 0 {
		return nil
	}
	return c.credit(points, "first")
}

func (c crasher) credit(points int64, reference string) error {
	_, err := wallets.Post(c.ctx, engine.Of(c.e), wallets.PostArgs{Wallet: "w", Delta: points, Reason: "credit", Reference: reference})
	if err == nil {
		err = batchengine.Resume(c.ctx, engine.Of(c.e), "w")
	}
	return err
}

// create creates a batch whose items cost 10 each.
func (c crasher) create(items int) error {
	_, err := batchengine.Create(c.ctx, engine.Of(c.e), batchengine.New{ID: "b", Wallet: "w", Handler: "h", MaxConcurrency: 2, Attempts: 2, MaxCrashes: 100, Items: work(items, 10)})
	if fault.CodeOf(err) == fault.Conflict {
		err = nil
	}
	return err
}

// pages creates a batch in pages of one item.
func (c crasher) pages(items int) error {
	_, err := batchengine.Create(c.ctx, engine.Of(c.e), batchengine.New{ID: "b", Wallet: "w", Handler: "h", MaxConcurrency: 2, Attempts: 1, MaxCrashes: 100, Open: true})
	if err != nil && fault.CodeOf(err) != fault.Conflict {
		return err
	}
	b, err := batchengine.Get(c.ctx, engine.Of(c.e), "b")
	if err != nil || b.Sealed || b.CancelRequested {
		return err
	}
	for _, w := range work(items, 10) {
		if _, err := batchengine.Add(c.ctx, engine.Of(c.e), "b", []batchengine.Work{w}); err != nil {
			return err
		}
	}
	_, err = batchengine.Seal(c.ctx, engine.Of(c.e), "b", "")
	return err
}

// step does one item.
func (c crasher) step() error {
	at, err := engine.Of(c.e).Partition(c.ctx, store.Read)
	if err == nil {
		_, err = engine.Of(c.e).StepOf(wake.WorkKind{Kind: wake.Batch, Name: "h"})(c.ctx, at)
	}
	return err
}

// settle does the rest.
func (c crasher) settle() error {
	_, err := holdfasttest.Settle(c.ctx, c.e)
	return err
}

// take takes items by hand, because [holdfasttest.Settle] leaves none with a holder.
func (c crasher) take(limit int) ([]batchengine.Taken, error) {
	return batchengine.Take(c.ctx, engine.Of(c.e), batchengine.Ask{Handlers: []string{"h"}, Holder: "me", Limit: limit, Lease: time.Minute})
}

// endAll settles items by hand, because [holdfasttest.Settle] does one after the other: together or, if that is not
// possible, one by one.
func (c crasher) endAll(some []batchengine.Taken) error {
	all := make([]batchengine.Finished, len(some))
	for i, t := range some {
		all[i] = batchengine.Finished{Taken: t, Output: []byte("2")}
	}
	settled, err := batchengine.SettleAll(c.ctx, engine.Of(c.e), all)
	for _, f := range all {
		if err == nil && !settled {
			_, err = batchengine.Settle(c.ctx, engine.Of(c.e), f.Taken, f.Output)
		}
	}
	return err
}

func (c crasher) get() (batchengine.Batch, error) { return batchengine.Get(c.ctx, engine.Of(c.e), "b") }

// check verifies the end: the batch has ended, the wallet has lost only the price of
// accepted items, and each item that was done and not refunded was done once.
func (c crasher) check(funds int64, statuses ...string) error {
	b, err := c.get()
	if err != nil {
		return err
	}
	if !slices.Contains(statuses, b.Status) {
		return fmt.Errorf("batch has status %s: %+v", b.Status, b)
	}
	w, err := wallets.Get(c.ctx, engine.Of(c.e), "w")
	if err != nil {
		return err
	}
	if want := funds - 10*b.Accepted; w.Balance != want || b.Charged-b.Refunded != 10*b.Accepted {
		return fmt.Errorf("wallet balance is %d, want %d: %+v", w.Balance, want, b)
	}
	if a, err := wallets.Audit(c.ctx, engine.Of(c.e), "w"); err != nil || len(a.Wrong) > 0 {
		return fmt.Errorf("wallet does not match its ledger: %+v, %w", a.Wrong, err)
	}
	items, err := batchengine.Items(c.ctx, engine.Of(c.e), "b", 0, "", 100)
	if err != nil {
		return err
	}
	for _, i := range items {
		did, err := holdfast.Collect(stream.Read(c.ctx, c.e, "did/"+i.Key, 0))
		if err != nil {
			return err
		}
		whole := len(did) == 1 && slices.Contains(c.world.Keys(c.ctx, "work"), i.Key)
		if len(did) > 1 || i.State == "succeeded" && whole != (string(i.Output) == "1") || i.Decision == "" && i.State != "failed" {
			return fmt.Errorf("item %+v was recorded %d times", i, len(did))
		}
	}
	return nil
}

func TestCrashOfABatch(t *testing.T) {
	w := new(holdfasttest.World)
	scenario := func(name string, do, check func(crasher) error) {
		holdfasttest.Crash(t, holdfasttest.Scenario{Name: name, Pairs: true, Parts: crasher{world: w}.parts,
			Do:      func(ctx context.Context, e *holdfast.Engine) error { return do(crasher{ctx, e, w}) },
			Recover: func(context.Context, *holdfast.Engine) error { return nil }, // no batch must end before it is cancelled
			Check:   func(ctx context.Context, e *holdfast.Engine) error { return check(crasher{ctx, e, w}) }})
	}
	made := func(funds int64, items int, then ...func(crasher) error) func(crasher) error {
		then = append(then, crasher.settle)
		return func(c crasher) error {
			err := c.fund(funds)
			if err == nil {
				err = c.create(items)
			}
			for _, do := range then {
				if err == nil {
					err = do(c)
				}
			}
			return err
		}
	}
	cancel := func(c crasher) error {
		_, _, err := batchengine.Cancel(c.ctx, engine.Of(c.e), "b", "")
		if fault.CodeOf(err) == fault.InvalidTransition { // it was completed before
			err = nil
		}
		return err
	}
	ends := func(funds int64, statuses ...string) func(crasher) error {
		return func(c crasher) error { return c.check(funds, statuses...) }
	}
	// until does something that is not repeated until n items have been taken.
	until := func(n int64, do func(crasher) error) func(crasher) error {
		return func(c crasher) error {
			if b, err := c.get(); err != nil || b.Next >= n {
				return err
			}
			return do(c)
		}
	}
	// abandon takes an item, like a worker that crashes then.
	abandon := func(c crasher) error {
		_, err := c.take(1)
		return err
	}
	// late takes items, cancels the batch, and ends the items.
	late := func(limit int, end func(crasher, []batchengine.Taken) error) func(crasher) error {
		return until(1, func(c crasher) error {
			some, err := c.take(limit)
			if err == nil {
				err = cancel(c)
			}
			if err == nil && len(some) > 0 {
				err = end(c, some)
			}
			return err
		})
	}

	scenario("create", func(c crasher) error {
		err := c.fund(0)
		if err == nil {
			err = c.pages(2)
		}
		return err
	}, func(c crasher) error {
		b, err := c.get()
		if err == nil && (b.Items != 2 || !b.Sealed || b.Status != batchengine.Pending) {
			err = fmt.Errorf("got batch %+v", b)
		}
		return err
	})
	scenario("run", made(20, 2, until(1, abandon)), ends(20, batchengine.Completed))
	together := func(c crasher) error {
		some, err := c.take(2)
		if err == nil {
			err = c.endAll(some)
		}
		return err
	}
	scenario("run together", made(30, 3, together, together), ends(30, batchengine.Completed))
	scenario("cancel together", made(20, 2, late(2, crasher.endAll), cancel), ends(20, batchengine.Cancelled, batchengine.Completed))
	scenario("cancel pending", made(30, 2, cancel), ends(30, batchengine.Cancelled))
	scenario("cancel running", made(30, 2, until(1, crasher.step), until(2, abandon), cancel, func(c crasher) error {
		return store.Shift(c.ctx, engine.Of(c.e), time.Hour) // the lease expires before the batch is torn down
	}), ends(30, batchengine.Cancelled, batchengine.Completed))
	scenario("cancel accepted", made(30, 2, until(1, crasher.step), func(c crasher) error {
		_, err := batchengine.Finalize(c.ctx, engine.Of(c.e), "b", nil, "")
		return err
	}, cancel), ends(30, batchengine.Cancelled, batchengine.Completed))
	scenario("cancel paused", made(10, 2, crasher.settle, cancel), ends(10, batchengine.Cancelled)) // the second has insufficient funds
	scenario("cancel and the last item", made(10, 1, late(1, func(c crasher, some []batchengine.Taken) error {
		return batchengine.SettleWith(c.ctx, engine.Of(c.e), some[0], []byte("1"), []batchengine.Commit{
			func(ctx context.Context, tx *store.Tx) error { return record(ctx, tx, some[0].Key) }})
	}), cancel), ends(10, batchengine.Cancelled, batchengine.Completed))
	scenario("credit", made(10, 2, crasher.settle, func(c crasher) error { return c.credit(10, "second") }), ends(20, batchengine.Completed))
}
