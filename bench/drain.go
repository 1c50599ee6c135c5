package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
	"github.com/holdfast-go/holdfast/stream"
)

// A drain is measured by itself, because it is a backlog that is worked off and
// not a rate that is sampled: the time in which a reaction handles all stored
// events is compared with the time in which hand-written SQL handles as many
// tasks, of which it leases a hundred at a time and acknowledges them together.

// drainClients is the number of callers of the hand-written SQL.
const drainClients = 4

// drainPlace is a store for Holdfast and for the hand-written SQL.
type drainPlace struct {
	place
	open func(context.Context, ...holdfast.Part) (*holdfast.Engine, error)
	sql  bestSystem
}

// drain measures in rounds, in each of which first the hand-written SQL and then
// Holdfast works off its backlog.
func drain(ctx context.Context, c config) ([]result, error) {
	var all []result
	for _, open := range []func(context.Context, config) (*drainPlace, error){drainPostgres, drainSQLite} {
		p, err := open(ctx, c)
		if err != nil {
			return all, err
		}
		if !c.run.MatchString(p.store + "/drain") {
			p.close()
			continue
		}
		found, err := p.measure(ctx, c)
		p.close()
		if err != nil {
			return all, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (p *drainPlace) measure(ctx context.Context, c config) ([]result, error) {
	var oursRates, sqlRates []float64
	for round := range c.rounds {
		if c.systems.MatchString(sqlBest) {
			rate, err := p.drainByHand(ctx, min(c.drainEvents, sqlMost), round)
			if err != nil {
				return nil, err
			}
			sqlRates = append(sqlRates, rate)
		}
		rate, err := p.ours(ctx, c, round)
		if err != nil {
			return nil, err
		}
		oursRates = append(oursRates, rate)
	}
	name := fmt.Sprintf("drain-%d-%d", c.drainEvents, c.drainStreams)
	mine, theirs := median(oursRates), median(sqlRates)
	fmt.Printf("%s/%s: holdfast %.0f/s, lease-100-and-ack %.0f/s, ratio %.2f (rounds: %.0f | %.0f)\n", p.store, name, mine, theirs, mine/theirs, oursRates, sqlRates)
	return []result{
		{Workload: name, Store: p.store, Clients: 1, System: ours, UnitsPerSecond: mine},
		{Workload: name, Store: p.store, Clients: drainClients, System: sqlBest, UnitsPerSecond: theirs},
	}, nil
}

// sqlMost bounds the number of tasks for the hand-written SQL, whose rate does
// not depend on it.
const sqlMost = 20000

// drainByHand leases a hundred at a time and acknowledges them, until none is left.
func (p *drainPlace) drainByHand(ctx context.Context, tasks, round int) (float64, error) {
	seed, seedCtx := errgroup.WithContext(ctx)
	seed.SetLimit(128)
	for i := range tasks {
		seed.Go(func() error { return p.sql.add(seedCtx, fmt.Sprintf("drain-%d-%d", round, i)) })
	}
	if err := seed.Wait(); err != nil {
		return 0, err
	}
	begun := clock.Now()
	group, ctx := errgroup.WithContext(ctx)
	var done atomic.Int64
	for range drainClients {
		group.Go(func() error {
			for {
				n, err := p.sql.leaseAll(ctx)
				if err != nil || n == 0 {
					return err
				}
				done.Add(int64(n))
			}
		})
	}
	err := group.Wait()
	if err == nil && done.Load() != int64(tasks) {
		err = fmt.Errorf("only %d of %d tasks were acknowledged", done.Load(), tasks)
	}
	return float64(tasks) / clock.Since(begun).Seconds(), err
}

// ours appends the events while the reaction is registered and no engine serves
// it, and then serves it until all are handled and acknowledged.
func (p *drainPlace) ours(ctx context.Context, c config, round int) (rate float64, err error) {
	var handled atomic.Int64
	all := make(chan struct{})
	name := fmt.Sprintf("drain-%d", round)
	part := stream.React(name, stream.Select{Pattern: fmt.Sprintf("^r%d-", round)}, func(context.Context, *stream.Delivery) error {
		if handled.Add(1) == int64(c.drainEvents) {
			close(all)
		}
		return nil
	}, stream.Options{})
	hf, err := p.open(ctx, part)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, hf.Close()) }()
	if err := p.fill(ctx, c, hf, round); err != nil {
		return 0, err
	}
	begun := clock.Now()
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- hf.Run(running) }()
	select {
	case <-all:
	case <-ctx.Done():
	}
	stop()
	if err := errors.Join(<-ended, ctx.Err()); err != nil {
		return 0, err
	}
	rate = float64(c.drainEvents) / clock.Since(begun).Seconds()
	progress, err := stream.GetProgress(ctx, hf, name)
	if err == nil && (progress.Behind > 0 || progress.Events != int64(c.drainEvents)) {
		err = fmt.Errorf("not all events were handled in the drain: %+v", progress)
	}
	if _, removed := stream.DeleteReaction(ctx, hf, name); removed != nil {
		err = errors.Join(err, removed)
	}
	return rate, err
}

func (p *drainPlace) fill(ctx context.Context, c config, hf *holdfast.Engine, round int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(128)
	each := c.drainEvents / c.drainStreams
	for range each {
		for s := range c.drainStreams {
			group.Go(func() error {
				_, err := stream.Append(ctx, hf, fmt.Sprintf("r%d-%d", round, s), stream.Any, stream.Event{Name: "counted", Data: []byte(payload)})
				return err
			})
		}
	}
	return group.Wait()
}

func drainPostgres(ctx context.Context, c config) (*drainPlace, error) {
	url, drop, err := pgtest.Database(ctx, pgtest.Options{})
	if err != nil {
		return nil, err
	}
	p := &drainPlace{place: place{store: "postgres", close: drop}}
	_, all, err := p.byHand(ctx, c, url, "baseline")
	if err != nil {
		p.close()
		return nil, err
	}
	p.sql = bestSystem{sqlSystem{all}, all}
	p.open = func(ctx context.Context, parts ...holdfast.Part) (*holdfast.Engine, error) {
		return holdfast.Open(ctx, postgres.URL(url), holdfast.Config{}, parts...)
	}
	return p, nil
}

func drainSQLite(ctx context.Context, c config) (*drainPlace, error) {
	dir, err := os.MkdirTemp(c.dir, ".bench-")
	if err != nil {
		return nil, err
	}
	p := &drainPlace{place: place{store: "sqlite", close: func() { _ = os.RemoveAll(dir) }}}
	all, err := p.inFileBest(ctx, filepath.Join(dir, "hand.db"))
	if err != nil {
		p.close()
		return nil, err
	}
	p.sql = bestSystem{sqlSystem{all}, all}
	p.open = func(ctx context.Context, parts ...holdfast.Part) (*holdfast.Engine, error) {
		return holdfast.Open(ctx, sqlite.File(filepath.Join(dir, "ours.db")), holdfast.Config{}, parts...)
	}
	return p, nil
}
