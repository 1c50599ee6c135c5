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

// A whole batch is measured by itself too, as a backlog is: how long it takes to make
// it, a page of a thousand items at a time, and how long to do all its items, by the
// public [batch.Kind] with bodies that do nothing, against the same by hand.

// bodies is how many items Holdfast does at once. By hand as many clients do one at a
// time, or a few do as many at once.
const bodies = 64

// wholeTime is how long one system took.
type wholeTime struct {
	made, done time.Duration
	n          int
}

func (t wholeTime) String() string {
	return fmt.Sprintf("made in %.2fs (%.0f/s), done in %.2fs (%.0f/s)", t.made.Seconds(), float64(t.n)/t.made.Seconds(), t.done.Seconds(), t.rate())
}

func (t wholeTime) rate() float64 { return float64(t.n) / t.done.Seconds() }

// wholeBatch measures on both databases.
func wholeBatch(ctx context.Context, c config) error {
	for _, open := range []func(context.Context, config) (*drainPlace, error){drainPostgres, drainSQLite} {
		p, err := open(ctx, c)
		if err != nil {
			return err
		}
		if c.run.MatchString(p.store + "/batch") {
			err = p.measureBatch(ctx, c)
		}
		p.close()
		if err != nil {
			return fmt.Errorf("%s: %w", p.store, err)
		}
	}
	return nil
}

func (p *drainPlace) measureBatch(ctx context.Context, c config) error {
	systems := []struct {
		name string
		run  func(ctx context.Context, id string, n int) (wholeTime, error)
	}{
		{ours, p.batchByKind},
		{sqlOne, func(ctx context.Context, id string, n int) (wholeTime, error) {
			return p.batchByHand(ctx, id, n, p.one, bodies, func(ctx context.Context) (int, error) { return oneItem(ctx, p.one, id) })
		}},
		{sqlBest, func(ctx context.Context, id string, n int) (wholeTime, error) {
			return p.batchByHand(ctx, id, n, p.hand.hand, drainClients, func(ctx context.Context) (int, error) { return p.hand.doItems(ctx, id, bodies) })
		}},
	}
	rates := make(map[string][]float64)
	for round := range c.rounds {
		for i := range systems {
			s := systems[(i+round)%len(systems)]
			if !c.systems.MatchString(s.name) {
				continue
			}
			took, err := s.run(ctx, fmt.Sprintf("whole-%d", round), c.batchItems)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			rates[s.name] = append(rates[s.name], took.rate())
			fmt.Printf("%s/batch-%d: %-8s %s\n", p.store, c.batchItems, s.name, took)
		}
	}
	mine := median(rates[ours])
	for _, of := range []string{sqlOne, sqlBest} {
		if theirs := median(rates[of]); theirs > 0 && mine > 0 {
			fmt.Printf("%s/batch-%d: %.2f of %s\n", p.store, c.batchItems, mine/theirs, of)
		}
	}
	return nil
}

// call is the input of an item.
type call struct {
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
}

type done struct {
	OK bool `json:"ok"`
}

func work(n int) iter.Seq[batch.NewItem[call]] {
	return func(yield func(batch.NewItem[call]) bool) {
		for i := range n {
			if !yield(batch.NewItem[call]{Key: itemKey(i), Cost: cost, Input: call{4200, "EUR"}}) {
				return
			}
		}
	}
}

// batchByKind makes a batch while nobody does its items, and then runs the engine until
// the batch is COMPLETED.
func (p *drainPlace) batchByKind(ctx context.Context, id string, n int) (t wholeTime, err error) {
	var ran atomic.Int64
	all := make(chan struct{})
	kind := batch.Define("call-"+id, func(context.Context, *batch.Item[call]) (done, error) {
		if ran.Add(1) == int64(n) {
			close(all)
		}
		return done{true}, nil
	}, batch.Options{MaxConcurrency: bodies, MaxWorkers: bodies})
	hf, err := p.open(ctx, kind)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, hf.Close()) }()
	if _, err = batch.PutWallet(ctx, hf, id, false); err == nil {
		_, err = batch.Credit(ctx, hf, id, 1<<50, "first")
	}
	if err != nil {
		return t, err
	}
	t.n = n
	begun := clock.Now()
	if _, err := kind.Create(ctx, hf, id, work(n), batch.ID(id)); err != nil {
		return t, err
	}
	t.made = clock.Since(begun)
	if err := p.settled(ctx); err != nil {
		return t, err
	}
	begun = clock.Now()
	err = p.untilOver(ctx, hf, id, all)
	t.done = clock.Since(begun)
	if err == nil && ran.Load() != int64(n) {
		err = fmt.Errorf("%d items were done, of %d", ran.Load(), n)
	}
	return t, err
}

// untilOver runs an engine until a batch is COMPLETED with all that it should be.
func (p *drainPlace) untilOver(ctx context.Context, hf *holdfast.Engine, id string, all <-chan struct{}) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- hf.Run(running) }()
	select {
	case <-all:
	case <-ctx.Done():
	}
	b, err := batch.Get(ctx, hf, id)
	for ; err == nil && !b.Over(); b, err = batch.Get(ctx, hf, id) {
		err = clock.Wait(ctx, 5*time.Millisecond)
	}
	stop()
	if err := errors.Join(<-ended, err); err != nil {
		return err
	}
	w, err := batch.GetWallet(ctx, hf, id)
	total := b.Counts.Succeeded
	if err == nil && (b.Status != batch.Completed || b.Counts != (batch.Counts{Succeeded: total, Accepted: total}) || b.Charged != cost*total || w.Balance != 1<<50-cost*total) {
		err = fmt.Errorf("at the end: %+v, %+v", b, w)
	}
	return err
}

// batchByHand makes a batch, and lets so many clients do its items until none is left.
func (p *drainPlace) batchByHand(ctx context.Context, id string, n int, h hand, clients int, some func(context.Context) (int, error)) (t wholeTime, err error) {
	t.n = n
	begun := clock.Now()
	if err := fillBatch(ctx, h, id, n); err != nil {
		return t, err
	}
	t.made = clock.Since(begun)
	if err := p.settled(ctx); err != nil {
		return t, err
	}
	begun = clock.Now()
	group, running := errgroup.WithContext(ctx)
	for range clients {
		group.Go(func() error {
			for {
				if n, err := some(running); err != nil || n == 0 {
					return err
				}
			}
		})
	}
	err = group.Wait()
	t.done = clock.Since(begun)
	if err != nil {
		return t, err
	}
	total := int64(n)
	c, err := h.CountBatch(ctx, id)
	c.Version = 0 // it counts the takes too
	want := baseline.BatchCounts{Items: total, Next: total, Succeeded: total, Charged: cost * total, Balance: 1<<50 - cost*total,
		Settled: total, Entries: total, Sum: -cost * total, Events: total}
	if err == nil && c != want {
		err = fmt.Errorf("at the end: %+v, want %+v", c, want)
	}
	return t, err
}

// oneItem takes one item and settles it.
func oneItem(ctx context.Context, h hand, id string) (int, error) {
	all, err := h.takeItems(ctx, id)
	for _, settle := range all {
		if err := settle(ctx); err != nil {
			return 0, err
		}
	}
	return len(all), err
}
