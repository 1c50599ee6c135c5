package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/batch"
	"github.com/holdfast-go/holdfast/bench/baseline"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/batchengine"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// batcher does batches of items that are paid for from a wallet.
type batcher interface {
	// batch makes a batch and its wallet, unless they are there, and returns how many
	// items it has and how many of them were ever taken.
	batch(ctx context.Context, id string) (items, taken int, err error)
	// addItems adds a page of items to it.
	addItems(ctx context.Context, id string, from, n int) error
	// takeItems takes up to [takeSize] items, or one where a system does one at a
	// time, and none if none is left. What it returns settles one of them each.
	takeItems(ctx context.Context, id string) ([]ack, error)
}

// manyItems is a system that settles what it takes in one call.
type manyItems interface {
	// doItems takes up to limit items and settles them, and returns how many.
	doItems(ctx context.Context, id string, limit int) (int, error)
}

const (
	itemBatch = "calls" // also what is done for its items
	itemPage  = 1000    // items that are added at once
	takeSize  = 16      // items that are taken at once
	itemLease = time.Hour
)

func itemKey(i int) string { return fmt.Sprintf("i-%08d", i) }

// fillItems adds items to the one batch until so many are left to be taken.
func fillItems(ctx context.Context, s system, left int) error {
	return fillBatch(ctx, s, itemBatch, left)
}

func fillBatch(ctx context.Context, b batcher, id string, left int) error {
	items, taken, err := b.batch(ctx, id)
	for err == nil && items-taken < left {
		n := min(itemPage, left-items+taken)
		err = b.addItems(ctx, id, items, n)
		items += n
	}
	return err
}

// startBatchItems gives each client the items that it takes itself, one after the
// other. What is left of them at the end of a slice is settled in the next one.
func startBatchItems(s system) unit {
	if s, ok := s.(manyItems); ok {
		return func(ctx context.Context, _, _ int) (int, error) {
			n, err := s.doItems(ctx, itemBatch, takeSize)
			if err == nil && n == 0 {
				err = errNoMore
			}
			return n, err
		}
	}
	var held [maxClients][]ack
	return single(func(ctx context.Context, client, _ int) (err error) {
		if len(held[client]) == 0 {
			if held[client], err = s.takeItems(ctx, itemBatch); err != nil {
				return err
			}
		}
		if len(held[client]) == 0 {
			return errNoMore
		}
		first := held[client][0]
		held[client] = held[client][1:]
		return first(ctx)
	})
}

func (e kernel) batch(ctx context.Context, id string) (items, taken int, err error) {
	b, err := batchengine.Get(ctx, engine.Of(e.hf), id)
	if fault.CodeOf(err) == fault.NotFound {
		if _, err = batch.PutWallet(ctx, e.hf, id, false); err == nil {
			_, err = batch.Credit(ctx, e.hf, id, 1<<50, "first")
		}
		if err == nil {
			b, err = batchengine.Create(ctx, engine.Of(e.hf), batchengine.New{ID: id, Wallet: id, Handler: id, MaxConcurrency: batchengine.MaxConcurrency, Open: true})
		}
	}
	return int(b.Items), int(b.Next), err
}

func (e kernel) addItems(ctx context.Context, id string, from, n int) error {
	page := make([]batchengine.Work, n)
	for i := range page {
		page[i] = batchengine.Work{Key: itemKey(from + i), Cost: cost, Input: []byte(payload)}
	}
	_, err := batchengine.Add(ctx, engine.Of(e.hf), id, page)
	return err
}

func (e kernel) takeItems(ctx context.Context, id string) ([]ack, error) {
	all, err := batchengine.Take(ctx, engine.Of(e.hf), batchengine.Ask{Handlers: []string{id}, Holder: holder, Lease: itemLease, Limit: takeSize})
	return each(all, func(ctx context.Context, t batchengine.Taken) error {
		_, err := batchengine.Settle(ctx, engine.Of(e.hf), t, []byte(output))
		return err
	}), err
}

// doItems settles items as a worker does that finished them at the same time.
func (e kernel) doItems(ctx context.Context, id string, limit int) (int, error) {
	all, err := batchengine.Take(ctx, engine.Of(e.hf), batchengine.Ask{Handlers: []string{id}, Holder: holder, Lease: itemLease, Limit: limit})
	if err != nil || len(all) == 0 {
		return 0, err
	}
	finished := make([]batchengine.Finished, len(all))
	for i, t := range all {
		finished[i] = batchengine.Finished{Taken: t, Output: []byte(output)}
	}
	settled, err := batchengine.SettleAll(ctx, engine.Of(e.hf), finished)
	if err == nil && !settled {
		err = fmt.Errorf("%d items were not settled", len(all))
	}
	return len(all), err
}

func (h hand) batch(ctx context.Context, id string) (items, taken int, err error) {
	err = h.CreateBatch(ctx, baseline.Batch{ID: id, Wallet: id, Handler: id, Parallel: batchengine.MaxConcurrency})
	if err == nil {
		return 0, 0, h.PutWallet(ctx, id, 1<<50)
	}
	if !errors.Is(err, baseline.ErrRefused) {
		return 0, 0, err
	}
	c, err := h.CountBatch(ctx, id)
	return int(c.Items), int(c.Next), err
}

func (h hand) addItems(ctx context.Context, id string, from, n int) error {
	page := make([]baseline.Item, n)
	for i := range page {
		page[i] = baseline.Item{Key: itemKey(from + i), Cost: cost, Input: payload}
	}
	return h.AddItems(ctx, id, page)
}

// takeItems takes one: a statement a round trip.
func (h hand) takeItems(ctx context.Context, id string) ([]ack, error) {
	x, err := h.TakeItem(ctx, id, holder, itemLease)
	if errors.Is(err, baseline.ErrRefused) {
		return nil, nil
	}
	return []ack{func(ctx context.Context) error { return h.SettleItem(ctx, x, output) }}, err
}

func (b best) doItems(ctx context.Context, id string, limit int) (int, error) {
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
