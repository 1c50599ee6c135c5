package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// workload is one kind of unit.
type workload struct {
	name string
	// seed makes, by a system that does it fast, the rows that units change.
	seed func(context.Context, system) error
	// start returns the unit: one call of a client, of so many. Two calls of
	// one client never run at once, and no two clients share a row unless
	// sharing is what the workload is about.
	start func(system) unit
}

type unit func(ctx context.Context, client, clients int) error

var workloads = []workload{
	// A guarded transition with its event, of rows that nobody else changes.
	{"transition", seedEntities, startTransition},
	// One event, at the expected version of a stream that nobody else writes to.
	{"append", seedStreams, startAppend},
	// A new entity with its event; every tenth call is a repetition, which must
	// find it and write nothing.
	{"create", nil, startCreate},
	// One number of one row, added to by all, each with its event.
	{"hot-row", func(ctx context.Context, s system) error { return s.put(ctx, "hot") }, startHotRow},
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

// walk gives each client its own rows, one after the other.
type walk struct{ next [maxClients]int }

const maxClients = 1024

func (w *walk) row(client, clients int) int {
	mine := seeded / clients
	w.next[client] = (w.next[client] + 1) % mine
	return w.next[client]*clients + client
}

func startTransition(s system) unit {
	var w walk
	closed := make([]bool, seeded)
	return func(ctx context.Context, client, clients int) error {
		row := w.row(client, clients)
		from, to := "open", "closed"
		if closed[row] {
			from, to = to, from
		}
		err := s.transition(ctx, rowName(row), from, to)
		closed[row] = closed[row] != (err == nil)
		return err
	}
}

func startAppend(s system) unit {
	var w walk
	heads := make([]int64, seeded)
	return func(ctx context.Context, client, clients int) error {
		row := w.row(client, clients)
		err := s.append(ctx, rowName(row), heads[row])
		if err == nil {
			heads[row]++
		}
		return err
	}
}

func startCreate(s system) unit {
	var made atomic.Int64
	var last [maxClients]string
	return func(ctx context.Context, client, clients int) error {
		n := made.Add(1)
		if n%10 == 0 && last[client] != "" {
			if err := s.create(ctx, last[client]); !refusal(err) {
				return fmt.Errorf("a repeated create was not refused: %w", err)
			}
			return nil
		}
		last[client] = fmt.Sprintf("n-%09d", n)
		return s.create(ctx, last[client])
	}
}

func startHotRow(s system) unit {
	return func(ctx context.Context, _, _ int) error { return s.inc(ctx, "hot") }
}
