package batchengine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wallets"
)

// crasher is a batch whose steps are repeated until they are done, and whose maintenance
// runs by hand.
type crasher struct {
	ctx context.Context
	e   *holdfast.Engine
	// together is set if items are settled together, without a record in a stream.
	together bool
}

func (c crasher) partition() (store.Partition, error) {
	return engine.Of(c.e).Partition(c.ctx, store.Read)
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
	_, err := batchengine.Create(c.ctx, engine.Of(c.e), batchengine.New{ID: "b", Wallet: "w", Handler: "h", MaxConcurrency: 2, Attempts: 1, MaxCrashes: 100, Items: work(items, 10)})
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

// do takes items and ends each: the second fails permanently, the others succeed and
// record that in a stream with their end.
func (c crasher) do(limit int) (n int, err error) {
	some, err := batchengine.Take(c.ctx, engine.Of(c.e), batchengine.Ask{Handlers: []string{"h"}, Holder: "me", Limit: limit, Lease: time.Minute})
	if err == nil && c.together {
		return len(some), c.endAll(some)
	}
	for _, t := range some {
		if err == nil {
			err = c.end(t)
		}
	}
	return len(some), err
}

// endAll settles items as a worker does: together or, if that is not possible, one by one.
func (c crasher) endAll(some []batchengine.Taken) error {
	all := make([]batchengine.Finished, len(some))
	for i, t := range some {
		all[i] = batchengine.Finished{Taken: t, Output: []byte("1")}
	}
	settled, err := batchengine.SettleAll(c.ctx, engine.Of(c.e), all)
	for _, f := range all {
		if err == nil && !settled {
			_, err = batchengine.Settle(c.ctx, engine.Of(c.e), f.Taken, f.Output)
		}
	}
	return err
}

func (c crasher) end(t batchengine.Taken) error {
	if t.Key == "k001" {
		_, err := batchengine.Fail(c.ctx, engine.Of(c.e), t, "no", 0, false)
		return err
	}
	return batchengine.SettleWith(c.ctx, engine.Of(c.e), t, []byte("1"), []batchengine.Commit{func(ctx context.Context, tx *store.Tx) error {
		_, err := events.Append(ctx, tx, events.AppendArgs{Stream: "did/" + t.Key, Events: []events.Event{{Name: "did", Data: []byte("{}")}}})
		return err
	}})
}

// maintain does the work of a running program's loops after all leases have expired.
func (c crasher) maintain() error {
	at, err := c.partition()
	if err == nil {
		err = store.Shift(c.ctx, engine.Of(c.e), time.Hour)
	}
	if err == nil {
		_, err = batchengine.Expire(c.ctx, engine.Of(c.e), at)
	}
	if err == nil {
		_, err = batchengine.ResumeAll(c.ctx, engine.Of(c.e), at)
	}
	if err == nil {
		_, err = batchengine.Advance(c.ctx, engine.Of(c.e), at)
	}
	var all []batchengine.Swept
	if err == nil {
		all, err = batchengine.Dirty(c.ctx, engine.Of(c.e), batchengine.Sweep{At: at, Lease: time.Minute, Limit: 10})
	}
	for _, s := range all {
		if err == nil {
			err = batchengine.Cleaned(c.ctx, engine.Of(c.e), s)
		}
	}
	return err
}

func (c crasher) get() (batchengine.Batch, error) { return batchengine.Get(c.ctx, engine.Of(c.e), "b") }

// finish repeats the rounds until the batch has ended.
func (c crasher) finish() error {
	for range 10 {
		b, err := c.get()
		if err != nil || b.Over() {
			return err
		}
		for n := 1; n > 0 && err == nil; {
			n, err = c.do(2)
		}
		if err == nil {
			err = c.maintain()
		}
		if err != nil {
			return err
		}
	}
	return errors.New("batch did not end")
}

// check verifies the end: the batch has ended, the wallet has lost only the price of
// accepted items, and each item that was done and not refunded was done once.
func (c crasher) check(funds int64, statuses ...string) error {
	b, err := c.get()
	if err != nil {
		return err
	}
	fits := false
	for _, s := range statuses {
		fits = fits || b.Status == s
	}
	if !fits {
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
		did, err := events.Read(c.ctx, engine.Of(c.e), events.ReadArgs{Stream: "did/" + i.Key, Limit: 10})
		if err != nil {
			return err
		}
		if len(did) > 1 || i.State == "succeeded" && len(did) != 1 && !c.together || i.Decision == "" && i.State != "failed" {
			return fmt.Errorf("item %+v was executed %d times", i, len(did))
		}
	}
	return nil
}

func TestCrashOfABatch(t *testing.T) {
	scenario := func(name string, do, check func(crasher) error) {
		holdfasttest.Crash(t, holdfasttest.Scenario{Name: name, Pairs: true,
			Do:    func(ctx context.Context, e *holdfast.Engine) error { return do(crasher{ctx: ctx, e: e}) },
			Check: func(ctx context.Context, e *holdfast.Engine) error { return check(crasher{ctx: ctx, e: e}) }})
	}
	made := func(funds int64, items int, then func(crasher) error) func(crasher) error {
		return func(c crasher) error {
			err := c.fund(funds)
			if err == nil {
				err = c.create(items)
			}
			if err == nil {
				err = then(c)
			}
			return err
		}
	}
	cancel := func(c crasher) error {
		_, _, err := batchengine.Cancel(c.ctx, engine.Of(c.e), "b", "")
		if fault.CodeOf(err) == fault.InvalidTransition { // it was completed before
			err = nil
		}
		if err == nil {
			err = c.finish()
		}
		return err
	}
	ends := func(funds int64, statuses ...string) func(crasher) error {
		return func(c crasher) error { return c.check(funds, statuses...) }
	}
	// begun reports whether a step that is not repeated was requested before.
	begun := func(c crasher, n int64) bool {
		b, err := c.get()
		return err == nil && b.Next >= n
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
	scenario("run", made(20, 2, crasher.finish), ends(20, batchengine.Completed))
	scenario("run together", made(30, 3, func(c crasher) error {
		c.together = true
		return c.finish()
	}), func(c crasher) error {
		c.together = true
		return c.check(30, batchengine.Completed)
	})
	scenario("cancel together", made(20, 2, func(c crasher) error {
		c.together = true
		if !begun(c, 1) {
			some, err := batchengine.Take(c.ctx, engine.Of(c.e), batchengine.Ask{Handlers: []string{"h"}, Holder: "me", Limit: 2, Lease: time.Minute})
			if err != nil {
				return err
			}
			if _, _, err := batchengine.Cancel(c.ctx, engine.Of(c.e), "b", ""); err != nil {
				return err
			}
			if err := c.endAll(some); err != nil {
				return err
			}
		}
		return cancel(c)
	}), func(c crasher) error {
		c.together = true
		return c.check(20, batchengine.Cancelled, batchengine.Completed)
	})
	scenario("cancel pending", made(30, 2, cancel), ends(30, batchengine.Cancelled))
	scenario("cancel running", made(30, 2, func(c crasher) error {
		if !begun(c, 1) {
			if _, err := c.do(1); err != nil { // one has succeeded
				return err
			}
		}
		if !begun(c, 2) { // and one runs
			if _, err := batchengine.Take(c.ctx, engine.Of(c.e), batchengine.Ask{Handlers: []string{"h"}, Holder: "dead", Limit: 1, Lease: time.Minute}); err != nil {
				return err
			}
		}
		return cancel(c)
	}), ends(30, batchengine.Cancelled, batchengine.Completed))
	scenario("cancel accepted", made(30, 2, func(c crasher) error {
		if !begun(c, 1) {
			if _, err := c.do(1); err != nil {
				return err
			}
		}
		if _, err := batchengine.Finalize(c.ctx, engine.Of(c.e), "b", nil, ""); err != nil {
			return err
		}
		return cancel(c)
	}), ends(30, batchengine.Cancelled, batchengine.Completed))
	scenario("cancel paused", made(10, 2, func(c crasher) error {
		for range 2 { // the second has insufficient funds
			if _, err := c.do(1); err != nil {
				return err
			}
		}
		return cancel(c)
	}), ends(10, batchengine.Cancelled))
	scenario("cancel and the last item", made(10, 1, func(c crasher) error {
		if !begun(c, 1) {
			some, err := batchengine.Take(c.ctx, engine.Of(c.e), batchengine.Ask{Handlers: []string{"h"}, Holder: "me", Limit: 1, Lease: time.Minute})
			if err != nil {
				return err
			}
			if _, _, err := batchengine.Cancel(c.ctx, engine.Of(c.e), "b", ""); err != nil {
				return err
			}
			for _, x := range some {
				if err := c.end(x); err != nil {
					return err
				}
			}
		}
		return cancel(c)
	}), ends(10, batchengine.Cancelled, batchengine.Completed))
	scenario("credit", made(10, 2, func(c crasher) error {
		for range 2 {
			if _, err := c.do(1); err != nil {
				return err
			}
		}
		if err := c.credit(10, "second"); err != nil {
			return err
		}
		return c.finish()
	}), ends(20, batchengine.Completed))
}
