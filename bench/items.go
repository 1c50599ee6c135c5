package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/bench/baseline"
	"github.com/holdfast-go/holdfast/internal/clock"
)

// A slice of the workload batch-items processes a batch of its own, which is made beforehand: with
// a [batch.Kind] whose body does nothing, or with hand-written SQL. clients is the number of items
// that are in progress at once. Each batch is as large as the previous slice was fast.

const (
	itemPage  = 1000 // items that are added at once
	takeSize  = 16   // items that sql-best takes at once
	itemLease = time.Hour
	cost      = 7
	balance   = 1 << 50
)

func itemKey(i int) string { return fmt.Sprintf("i-%08d", i) }

// pace chooses the names and sizes of batches.
type pace struct {
	perSecond float64
	made      int
}

func (p *pace) next(t sliceSize) (id string, items int) {
	p.made++
	return fmt.Sprintf("batch-%d-%d", t.clients, p.made), max(20*t.clients, int(p.perSecond*t.long.Seconds()), 200)
}

// timed returns a slice that measures work, which processes the items. check verifies the batch afterwards.
func (p *pace) timed(items int, work, check func() error) slice {
	return func() (s sample, err error) {
		start := clock.Now()
		err = work()
		s = sample{units: items, took: clock.Since(start), check: check}
		p.perSecond = float64(items) / s.took.Seconds()
		return s, err
	}
}

func openItems(_ context.Context, s system) (slicer, func(), error) {
	p := new(pace)
	switch s := s.(type) {
	case holdfastSystem:
		k := &kinds{holdfastSystem: s, pace: p}
		return k.slice, k.close, nil
	case sqlSystem:
		return func(ctx context.Context, t sliceSize) (slice, error) {
			id, n := p.next(t)
			return s.items(ctx, p, id, n, t.clients, func(ctx context.Context) (int, error) { return s.oneItem(ctx, id) })
		}, nil, nil
	case bestSystem:
		return func(ctx context.Context, t sliceSize) (slice, error) {
			id, n := p.next(t)
			at := min(t.clients, takeSize)
			return s.sqlSystem.items(ctx, p, id, n, t.clients/at, func(ctx context.Context) (int, error) { return s.doItems(ctx, id, at) })
		}, nil, nil
	}
	return nil, nil, nil
}

type done struct {
	OK bool `json:"ok"`
}

// kinds is an engine with a kind for a number of clients. The bodies wait at the gate until a slice
// begins, so that none runs while another system is measured.
type kinds struct {
	holdfastSystem
	*pace
	clients int
	hf      *holdfast.Engine
	kind    *batch.Kind[invoice, done]
	stop    func()
	gate    atomic.Pointer[chan struct{}]
}

func (k *kinds) close() {
	if k.hf != nil {
		k.stop()
		_ = k.hf.Close()
	}
	k.hf = nil
}

// prepare opens the engine for a number of clients.
func (k *kinds) prepare(ctx context.Context, clients int) (err error) {
	if k.hf != nil && k.clients == clients {
		return nil
	}
	k.close()
	k.shut()
	k.clients = clients
	k.kind = batch.Define(fmt.Sprintf("call-%d", clients), func(ctx context.Context, _ *batch.Item[invoice]) (done, error) {
		select {
		case <-*k.gate.Load():
			return done{true}, nil
		case <-ctx.Done():
			return done{}, ctx.Err()
		}
	}, batch.Options{MaxConcurrency: clients, MaxWorkers: clients})
	if k.hf, err = k.open(ctx, k.kind); err != nil {
		return err
	}
	k.stop = background(ctx, k.hf)
	return nil
}

// shut closes the gate.
func (k *kinds) shut() {
	gate := make(chan struct{})
	k.gate.Store(&gate)
}

func (k *kinds) slice(ctx context.Context, t sliceSize) (slice, error) {
	if err := k.prepare(ctx, t.clients); err != nil {
		return nil, err
	}
	k.shut()
	id, n := k.next(t)
	_, err := batch.PutWallet(ctx, k.hf, id)
	if err == nil {
		_, err = batch.Credit(ctx, k.hf, id, balance, "first")
	}
	if err == nil {
		_, err = k.kind.Create(ctx, k.hf, id, itemsOf(n), batch.ID(id))
	}
	return k.timed(n, func() error {
		close(*k.gate.Load())
		return k.untilOver(ctx, id)
	}, func() error { return k.checkBatch(ctx, id, int64(n)) }), err
}

func (k *kinds) untilOver(ctx context.Context, id string) error {
	for {
		b, err := batch.Get(ctx, k.hf, id)
		if err != nil || b.Over() {
			return err
		}
		if err := clock.Wait(ctx, 2*time.Millisecond); err != nil {
			return err
		}
	}
}

func (k *kinds) checkBatch(ctx context.Context, id string, total int64) error {
	b, err := batch.Get(ctx, k.hf, id)
	if err != nil {
		return err
	}
	w, err := batch.GetWallet(ctx, k.hf, id)
	if err == nil && (b.Status != batch.Completed || b.Counts != (batch.Counts{Succeeded: total, Accepted: total}) || b.Charged != cost*total || w.Balance != balance-cost*total) {
		err = fmt.Errorf("at the end: %+v, %+v", b, w)
	}
	return err
}

func itemsOf(n int) iter.Seq[batch.NewItem[invoice]] {
	return func(yield func(batch.NewItem[invoice]) bool) {
		for i := range n {
			if !yield(batch.NewItem[invoice]{Key: itemKey(i), Cost: cost, Input: amount}) {
				return
			}
		}
	}
}

// items makes a batch. In the slice, the callers call some, which processes items, until none is left.
func (h sqlSystem) items(ctx context.Context, p *pace, id string, n, callers int, some func(context.Context) (int, error)) (slice, error) {
	err := h.CreateBatch(ctx, baseline.Batch{ID: id, Wallet: id, Handler: "call", Parallel: 64})
	if err == nil {
		err = h.PutWallet(ctx, id, balance)
	}
	for from := 0; err == nil && from < n; from += itemPage {
		err = h.addItems(ctx, id, from, min(itemPage, n-from))
	}
	return p.timed(n, func() error {
		group, running := errgroup.WithContext(ctx)
		for range callers {
			group.Go(func() error {
				for {
					if n, err := some(running); err != nil || n == 0 {
						return err
					}
				}
			})
		}
		return group.Wait()
	}, func() error { return h.checkBatch(ctx, id, int64(n)) }), err
}

// checkBatch checks that every item was processed and paid for once.
func (h sqlSystem) checkBatch(ctx context.Context, id string, total int64) error {
	c, err := h.CountBatch(ctx, id)
	c.Version = 0 // it counts the takes too
	want := baseline.BatchCounts{Items: total, Next: total, Succeeded: total, Charged: cost * total, Balance: balance - cost*total,
		Settled: total, Entries: total, Sum: -cost * total, Events: total}
	if err == nil && c != want {
		err = fmt.Errorf("at the end: %+v, want %+v", c, want)
	}
	return err
}

func (h sqlSystem) addItems(ctx context.Context, id string, from, n int) error {
	page := make([]baseline.Item, n)
	for i := range page {
		page[i] = baseline.Item{Key: itemKey(from + i), Cost: cost, Input: payload}
	}
	return h.AddItems(ctx, id, page)
}

// oneItem takes one item and settles it: a statement each.
func (h sqlSystem) oneItem(ctx context.Context, id string) (int, error) {
	x, err := h.TakeItem(ctx, id, holder, itemLease)
	if errors.Is(err, baseline.ErrRefused) {
		return 0, nil
	}
	if err == nil {
		err = h.SettleItem(ctx, x, output)
	}
	return 1, err
}

// doItems takes up to limit items in one statement, and settles them in another.
func (b bestSystem) doItems(ctx context.Context, id string, limit int) (int, error) {
	many := b.System.(baseline.ManyItems)
	all, err := many.TakeItems(ctx, id, holder, itemLease, limit)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	n, err := many.SettleItems(ctx, id, all, output)
	if err == nil && n != len(all) {
		err = fmt.Errorf("%d of %d items were settled", n, len(all))
	}
	return n, err
}
