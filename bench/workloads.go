package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// workload is one type of unit, whose rate is measured: a call, a run or an item of a batch.
type workload struct {
	name string
	// clients are the numbers of clients that it is measured with; nil means all of [clientCounts].
	clients []int
	// seed makes the rows that units change, with the seeder of a system.
	seed func(context.Context, system) error
	// open prepares a system for the workload. t is nil if the system does not have such a call.
	// end, if it is not nil, is called after the last slice.
	open func(context.Context, system) (t slicer, end func(), err error)
}

// sliceSize sets the number of clients and the duration of a slice.
type sliceSize struct {
	clients int
	long    time.Duration
}

// slicer prepares a slice, which is one measurement.
type slicer func(context.Context, sliceSize) (slice, error)

// slice is what is measured: it makes calls for a while.
type slice func() (sample, error)

// unit is one call of a client; clients is the number of all clients. Two calls of one client
// never run at once, and two clients share a row only if the workload is about that.
type unit func(ctx context.Context, client, clients int) error

var workloads = []workload{
	// A conditional change of a status with its event, of rows that no other client changes.
	{name: "transition", seed: seedEntities, open: calls(startTransition)},
	// One event, at the expected version of a stream that no other client writes to.
	{name: "append", seed: seedStreams("r"), open: calls(startAppend)},
	// The same through the HTTP API, with an API key, over loopback; with and without an
	// Idempotency-Key. The hand-written SQL is called without HTTP.
	{name: "append-http", clients: []int{1, 16}, seed: seedStreams("h"), open: openHTTP("h", false)},
	{name: "append-http-key", clients: []int{1, 16}, seed: seedStreams("k"), open: openHTTP("k", true)},
	// A new entity with its event; every tenth call is a repetition, which must
	// find it and write nothing.
	{name: "create", open: calls(startCreate)},
	// One number of one row, added to by all, each with its event.
	{name: "hot-row", seed: func(ctx context.Context, s system) error { return s.put(ctx, "hot") }, open: calls(startHotRow)},
	// The state of one row, which all clients change with a function: it is read, changed, and
	// written if no other client was faster.
	{name: "hot-swap", seed: func(ctx context.Context, s system) error { return s.put(ctx, "swapped") }, open: calls(startHotSwap)},
	// Five conditional changes of the status of a row, one after the other, each with its event.
	{name: "run-5", seed: seedRuns, open: calls(startRun)},
	// An item of a batch that is taken, charged to a wallet with a row of its ledger, and
	// settled with its event.
	{name: "batch-items", open: openItems},
	// A run of three plain steps, as users have them: it is started under a key of its own and
	// awaited, while the engine runs in the background. The caller of hand-written SQL executes the
	// steps itself.
	{name: "run-3", open: openRuns(threeSteps)},
	// The same with steps that are recorded behind. Other systems record each step.
	{name: "run-3-behind", open: openRuns(threeBehind)},
	// The same with one step, as in a job queue.
	{name: "run-1", open: openRuns(oneStep)},
	// The start of a run on a node that does not run, until its first step begins on another.
	{name: "wake-up", clients: []int{1}, open: openWake},
}

// calls opens a workload whose units are calls.
func calls(start func(system) unit) func(context.Context, system) (slicer, func(), error) {
	return func(_ context.Context, s system) (slicer, func(), error) { return callers(start(s)), nil, nil }
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
	return seedAll(ctx, func(ctx context.Context, i int) error { return s.create(ctx, rowName("r", i)) })
}

func seedStreams(prefix string) func(context.Context, system) error {
	return func(ctx context.Context, s system) error {
		return seedAll(ctx, func(ctx context.Context, i int) error { return s.append(ctx, rowName(prefix, i), -1) })
	}
}

// walk gives each client its own rows, one after the other. The rows of one client are
// neighbours, those of different clients are not: otherwise the number of pages that a
// shared commit writes would depend on whether the clients of a system advance together.
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
	return func(ctx context.Context, client, clients int) error {
		row := w.row(client, clients)
		from, to := "open", "closed"
		if closed[row] {
			from, to = to, from
		}
		err := s.transition(ctx, rowName("r", row), from, to)
		closed[row] = closed[row] != (err == nil)
		return err
	}
}

func startAppend(s system) unit { return appends("r", s.append) }

// appends walks over the streams with a prefix, each at its expected version.
func appends(prefix string, appendAt func(ctx context.Context, stream string, want int64) error) unit {
	var w walk
	heads := make([]int64, seeded)
	return func(ctx context.Context, client, clients int) error {
		row := w.row(client, clients)
		err := appendAt(ctx, rowName(prefix, row), heads[row])
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
				return errors.Join(errors.New("a repeated create was not refused"), err)
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

// runStatuses are the statuses that a row of run-5 passes in a circle. After runLength changes it is one before its
// start.
var runStatuses = []string{"open", "s1", "s2", "s3", "s4", "s5"}

const runLength = 5

func seedRuns(ctx context.Context, s system) error {
	return seedAll(ctx, func(ctx context.Context, i int) error { return s.create(ctx, rowName("run", i)) })
}

func startRun(s system) unit {
	var w walk
	at := make([]int, seeded)
	return func(ctx context.Context, client, clients int) error {
		row := w.row(client, clients)
		for range runLength {
			to := (at[row] + 1) % len(runStatuses)
			if err := s.transition(ctx, rowName("run", row), runStatuses[at[row]], runStatuses[to]); err != nil {
				return err
			}
			at[row] = to
		}
		return nil
	}
}
