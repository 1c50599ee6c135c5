package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/baseline"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/lifecycle"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/scope"
	"github.com/holdfast-go/holdfast/stream"
)

// The names of the systems, as in the results.
const (
	ours      = "holdfast"
	sqlOne    = "sql"
	sqlBest   = "sql-best"
	sqlSwap   = "sql-cas"    // a sum by compare-and-swap, with retries
	sqlLocked = "sql-locked" // one lock over all appends

	oursLocked = "holdfast-locked" // Holdfast's appends under the same lock

	peerDBOS  = "dbos"
	peerRiver = "river"
)

// system makes the calls of the workloads. A refused call is an error.
type system interface {
	create(ctx context.Context, id string) error
	transition(ctx context.Context, id, from, to string) error
	append(ctx context.Context, stream string, want int64) error
	inc(ctx context.Context, id string) error
	put(ctx context.Context, id string) error
	// swap changes the state of a scope with a function, by compare-and-swap.
	swap(ctx context.Context, id string) error
	// run starts a run of a workflow under a key, and waits for its end.
	run(ctx context.Context, key string, w workflow) error
}

const (
	lifecycleName = "invoice"
	kind          = "org"
	field         = "count"
	queue         = "mail"
	holder        = "bench"
	output        = `{"ok":true}`
	payload       = `{"amount":4200,"currency":"EUR"}`
)

// invoice is the data of an entity and the input of an item.
type invoice struct {
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
}

var amount = invoice{4200, "EUR"}

// invoices has a step without a claim and without code for each move of the workloads.
var invoices = func() *lifecycle.Lifecycle[invoice] {
	moves := [][2]string{{"open", "closed"}, {"closed", "open"}, {"closed", "gone"}} // a config needs a final status
	for i, from := range runStatuses {
		moves = append(moves, [2]string{from, runStatuses[(i+1)%len(runStatuses)]})
	}
	var config strings.Builder
	fmt.Fprintf(&config, "workflow: %s\nowning_module: bench\nstatus_types: [closed, gone, %s]\ninitial_status: open\nsteps:\n", lifecycleName, strings.Join(runStatuses, ", "))
	for i, m := range moves {
		fmt.Fprintf(&config, "  - {step_id: %d, step_key: %s, status: %s, successful_state: {admin: %s}}\n", 10*(i+1), moveStep(m[0], m[1]), m[0], m[1])
	}
	return lifecycle.MustParse[invoice]([]byte(config.String()))
}()

func moveStep(from, to string) string { return from + "_to_" + to }

// holdfastSystem is Holdfast, through its public API.
type holdfastSystem struct {
	hf *holdfast.Engine
	// open opens another engine on the same database.
	open func(context.Context, ...holdfast.Part) (*holdfast.Engine, error)
	// nodes says that several engines can share the database.
	nodes bool
}

func (e holdfastSystem) create(ctx context.Context, id string) error {
	_, err := invoices.Create(ctx, e.hf, id, amount)
	return err
}

func (e holdfastSystem) transition(ctx context.Context, id, from, to string) error {
	_, err := invoices.Fire(ctx, e.hf, id, moveStep(from, to), "admin")
	return err
}

func (e holdfastSystem) append(ctx context.Context, name string, want int64) error {
	return appendPaid(ctx, e.hf, name, want)
}

func appendPaid(ctx context.Context, d holdfast.Doer, name string, want int64) error {
	_, err := stream.Append(ctx, d, name, stream.Version(want), stream.Event{Name: "paid", Data: []byte(payload)})
	return err
}

// lockedSystem is Holdfast with one lock over all appends, to show what that costs.
type lockedSystem struct{ holdfastSystem }

func (l lockedSystem) append(ctx context.Context, name string, want int64) error {
	return l.hf.Update(holdfast.InWorkspace(ctx, oursLocked), func(ctx context.Context, tx holdfast.Tx) error {
		if _, err := postgres.Raw(tx).Exec(ctx, "SELECT pg_advisory_xact_lock(8101979)"); err != nil {
			return err
		}
		return appendPaid(ctx, tx, name, want)
	})
}

func (e holdfastSystem) inc(ctx context.Context, id string) error {
	_, err := scope.In[map[string]int64](e.hf, kind, id).Inc(ctx, field, 1)
	return err
}

func (e holdfastSystem) put(ctx context.Context, id string) error {
	_, err := scope.In[map[string]int64](e.hf, kind, id).Patch(ctx, map[string]int64{field: 0})
	return err
}

// sqlSystem is hand-written SQL.
type sqlSystem struct{ baseline.System }

func (h sqlSystem) create(ctx context.Context, id string) error {
	_, err := h.Create(ctx, baseline.New{Lifecycle: lifecycleName, ID: id, Status: "open", Data: payload})
	return err
}

func (h sqlSystem) transition(ctx context.Context, id, from, to string) error {
	_, err := h.Transition(ctx, baseline.Move{Lifecycle: lifecycleName, ID: id, From: from, To: to, Event: "moved"})
	return err
}

func (h sqlSystem) append(ctx context.Context, stream string, want int64) error {
	_, err := h.Append(ctx, baseline.Append{Stream: stream, Want: want, Name: "paid", Data: payload})
	return err
}

func (h sqlSystem) inc(ctx context.Context, id string) error {
	_, err := h.Inc(ctx, baseline.Inc{Kind: kind, ID: id, Field: field, By: 1})
	return err
}

func (h sqlSystem) put(ctx context.Context, id string) error {
	return h.PutScope(ctx, kind, id, `{"`+field+`":0}`)
}

func (h sqlSystem) add(ctx context.Context, id string) error {
	return h.AddTask(ctx, baseline.Task{Queue: queue, ID: id, Input: payload})
}

// swapSystem is hand-written SQL that changes a number as most programs do: it reads the
// row, adds, writes if the version is unchanged, and otherwise starts again.
type swapSystem struct{ sqlSystem }

func (c swapSystem) inc(ctx context.Context, id string) error { return c.swap(ctx, id) }

// bestSystem is hand-written SQL that groups calls wherever it can.
type bestSystem struct {
	sqlSystem
	baseline.AckAller
}

func (b bestSystem) leaseAll(ctx context.Context) (int, error) {
	all, err := b.Lease(ctx, queue, holder, time.Minute)
	if err != nil || len(all) == 0 {
		return 0, err
	}
	n, err := b.AckAll(ctx, all, output)
	if err == nil && n != len(all) {
		err = fmt.Errorf("only %d of %d tasks were acknowledged", n, len(all))
	}
	return n, err
}

// refusal reports whether an error says that an entity exists already.
func refusal(err error) bool {
	return errors.Is(err, baseline.ErrRefused) || fault.CodeOf(err) == fault.Conflict
}

// seeded is the number of rows of a workload whose clients change distinct rows.
const seeded = 10_000

func rowName(prefix string, i int) string { return fmt.Sprintf("%s-%06d", prefix, i) }
