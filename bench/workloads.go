package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// workload is one kind of unit.
type workload struct {
	name string
	// seed makes, by a system that does it fast, the rows that units change.
	seed func(context.Context, system) error
	// fill makes what units use up, before the first slice and between slices: so
	// many more of it.
	fill func(ctx context.Context, s system, left int) error
	// start returns the unit: one call of a client, of so many. Two calls of
	// one client never run at once, and no two clients share a row unless
	// sharing is what the workload is about.
	// A system that has no such call has no unit.
	start func(system) unit
	// background has the systems that can run in the background do so.
	background bool
}

// unit returns how many units it has done, which for most is one.
type unit func(ctx context.Context, client, clients int) (int, error)

// single is a unit that is one call.
func single(f func(ctx context.Context, client, clients int) error) unit {
	return func(ctx context.Context, client, clients int) (int, error) { return 1, f(ctx, client, clients) }
}

// errNoMore ends a slice early: there is nothing left to do.
var errNoMore = errors.New("nothing is left to do")

var workloads = []workload{
	// A guarded transition with its event, of rows that nobody else changes.
	{name: "transition", seed: seedEntities, start: startTransition},
	// One event, at the expected version of a stream that nobody else writes to.
	{name: "append", seed: seedStreams, start: startAppend},
	// A new entity with its event; every tenth call is a repetition, which must
	// find it and write nothing.
	{name: "create", start: startCreate},
	// One number of one row, added to by all, each with its event.
	{name: "hot-row", seed: func(ctx context.Context, s system) error { return s.put(ctx, "hot") }, start: startHotRow},
	// The state of one row, which all callers change by a function of their own: it is
	// read, decided on, and written if nobody was faster.
	{name: "hot-swap", seed: func(ctx context.Context, s system) error { return s.put(ctx, "swapped") }, start: startHotSwap},
	// Five guarded transitions of a row, one after the other, each with its event.
	{name: "run-5", seed: seedRuns, start: startRun},
	// An item that is taken while its cost is reserved from one of many wallets,
	// and then settled.
	{name: "item-wallet", seed: seedItems, start: startItemWallet},
	// An item of one batch that is taken, with up to 15 others, charged to one wallet
	// with a row of its ledger, and settled with its event. Each client takes its own
	// and settles one after the other, or, where a system can, all at once.
	{name: "batch-items", fill: fillItems, start: startBatchItems},
	// A run of five plain steps, started under a key of its own and taken to its end: six
	// transactions, each with two events or more.
	{name: "run-steps", start: startRuns},
	// A run of three plain steps, as a user has it: started under a key of its own and waited
	// for, while the engine runs in the background. By hand, the caller does the steps itself.
	{name: "run-3", start: startAwaited, background: true},
}

// seedAll calls f for every row, from many goroutines.
func seedAll(ctx context.Context, f func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(128)
	for i := range seeded {
		group.Go(func() error { return f(ctx, i) })
	}
	return group.Wait()
}

func seedEntities(ctx context.Context, s system) error {
	return seedAll(ctx, func(ctx context.Context, i int) error { return s.create(ctx, rowName(i)) })
}

func seedStreams(ctx context.Context, s system) error {
	return seedAll(ctx, func(ctx context.Context, i int) error { return s.append(ctx, rowName(i), -1) })
}

// walk gives each client its own rows, one after the other. Those of one client are
// neighbours, those of two are not: else the pages that a commit of several writes
// would depend on whether a system keeps its clients in step.
type walk struct{ next [maxClients]int }

const maxClients = 1024

func (w *walk) row(client, clients int) int {
	mine := seeded / clients
	w.next[client] = (w.next[client] + 1) % mine
	return client*mine + w.next[client]
}

func startTransition(s system) unit {
	var w walk
	closed := make([]bool, seeded)
	return single(func(ctx context.Context, client, clients int) error {
		row := w.row(client, clients)
		from, to := "open", "closed"
		if closed[row] {
			from, to = to, from
		}
		err := s.transition(ctx, rowName(row), from, to)
		closed[row] = closed[row] != (err == nil)
		return err
	})
}

func startAppend(s system) unit {
	var w walk
	heads := make([]int64, seeded)
	return single(func(ctx context.Context, client, clients int) error {
		row := w.row(client, clients)
		err := s.append(ctx, rowName(row), heads[row])
		if err == nil {
			heads[row]++
		}
		return err
	})
}

func startCreate(s system) unit {
	var made atomic.Int64
	var last [maxClients]string
	return single(func(ctx context.Context, client, clients int) error {
		n := made.Add(1)
		if n%10 == 0 && last[client] != "" {
			if err := s.create(ctx, last[client]); !refusal(err) {
				return fmt.Errorf("a repeated create was not refused: %w", err)
			}
			return nil
		}
		last[client] = fmt.Sprintf("n-%09d", n)
		return s.create(ctx, last[client])
	})
}

func startHotRow(s system) unit {
	return single(func(ctx context.Context, _, _ int) error { return s.inc(ctx, "hot") })
}

const wallets = 1000

func seedItems(ctx context.Context, s system) error {
	b, ok := s.(buyer)
	if !ok {
		return nil
	}
	return seedAll(ctx, func(ctx context.Context, i int) error {
		if i < wallets {
			if err := b.wallet(ctx, rowName(i)); err != nil {
				return err
			}
		}
		return s.create(ctx, "item-"+rowName(i))
	})
}

func startItemWallet(s system) unit {
	b, ok := s.(buyer)
	if !ok {
		return nil
	}
	var w walk
	return single(func(ctx context.Context, client, clients int) error {
		row := w.row(client, clients)
		item, wallet := "item-"+rowName(row), rowName(row%wallets)
		if err := b.take(ctx, item, wallet, "open"); err != nil {
			return err
		}
		return b.settle(ctx, item, wallet, "open")
	})
}

// runStatuses are what a run goes round: it ends one before where it began.
var runStatuses = []string{"open", "s1", "s2", "s3", "s4", "s5"}

const runLength = 5

func seedRuns(ctx context.Context, s system) error {
	return seedAll(ctx, func(ctx context.Context, i int) error { return s.create(ctx, "run-"+rowName(i)) })
}

func startRun(s system) unit {
	var w walk
	at := make([]int, seeded)
	return single(func(ctx context.Context, client, clients int) error {
		row := w.row(client, clients)
		for range runLength {
			to := (at[row] + 1) % len(runStatuses)
			if err := s.transition(ctx, "run-"+rowName(row), runStatuses[at[row]], runStatuses[to]); err != nil {
				return err
			}
			at[row] = to
		}
		return nil
	})
}
