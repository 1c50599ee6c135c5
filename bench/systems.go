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

// system does the units of the workloads. A call that is refused is an error:
// the workloads ask for nothing that must be.
type system interface {
	create(ctx context.Context, id string) error
	transition(ctx context.Context, id, from, to string) error
	append(ctx context.Context, stream string, want int64) error
	inc(ctx context.Context, id string) error
	put(ctx context.Context, id string) error
	// swap changes a state by a function.
	swap(ctx context.Context, id string) error
	// run starts a run of so many plain steps under a key, and waits for its end.
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

// kernel is Holdfast, by its public API.
type kernel struct {
	hf *holdfast.Engine
	// open opens another engine on the same database.
	open func(context.Context, ...holdfast.Part) (*holdfast.Engine, error)
	// nodes says that several engines share the database.
	nodes bool
}

func (e kernel) create(ctx context.Context, id string) error {
	_, err := invoices.Create(ctx, e.hf, id, amount)
	return err
}

func (e kernel) transition(ctx context.Context, id, from, to string) error {
	_, err := invoices.Fire(ctx, e.hf, id, moveStep(from, to), "admin")
	return err
}

func (e kernel) append(ctx context.Context, name string, want int64) error {
	return appendPaid(ctx, e.hf, name, want)
}

func appendPaid(ctx context.Context, d holdfast.Doer, name string, want int64) error {
	_, err := stream.Append(ctx, d, name, stream.Version(want), stream.Event{Name: "paid", Data: []byte(payload)})
	return err
}

// locked is Holdfast with one lock over all appends, to show what that costs.
type locked struct{ kernel }

func (l locked) append(ctx context.Context, name string, want int64) error {
	return l.hf.Update(holdfast.InWorkspace(ctx, oursLocked), func(ctx context.Context, tx holdfast.Tx) error {
		if _, err := postgres.Raw(tx).Exec(ctx, "SELECT pg_advisory_xact_lock(8101979)"); err != nil {
			return err
		}
		return appendPaid(ctx, tx, name, want)
	})
}

func (e kernel) inc(ctx context.Context, id string) error {
	_, err := scope.In[map[string]int64](e.hf, kind, id).Inc(ctx, field, 1)
	return err
}

func (e kernel) put(ctx context.Context, id string) error {
	_, err := scope.In[map[string]int64](e.hf, kind, id).Patch(ctx, map[string]int64{field: 0})
	return err
}

// hand is one of the systems written by hand.
type hand struct{ baseline.System }

func (h hand) create(ctx context.Context, id string) error {
	_, err := h.Create(ctx, baseline.New{Lifecycle: lifecycleName, ID: id, Status: "open", Data: payload})
	return err
}

func (h hand) transition(ctx context.Context, id, from, to string) error {
	_, err := h.Transition(ctx, baseline.Move{Lifecycle: lifecycleName, ID: id, From: from, To: to, Event: "moved"})
	return err
}

func (h hand) append(ctx context.Context, stream string, want int64) error {
	_, err := h.Append(ctx, baseline.Append{Stream: stream, Want: want, Name: "paid", Data: payload})
	return err
}

func (h hand) inc(ctx context.Context, id string) error {
	_, err := h.Inc(ctx, baseline.Inc{Kind: kind, ID: id, Field: field, By: 1})
	return err
}

func (h hand) put(ctx context.Context, id string) error {
	return h.PutScope(ctx, kind, id, `{"`+field+`":0}`)
}

func (h hand) add(ctx context.Context, id string) error {
	return h.AddTask(ctx, baseline.Task{Queue: queue, ID: id, Input: payload})
}

// compared is the system by hand that changes a number as most programs do: it reads the
// row, adds, writes if the version is unchanged, and else begins again.
type compared struct{ hand }

func (c compared) inc(ctx context.Context, id string) error { return c.swap(ctx, id) }

// best is the system by hand that does many at once wherever it can.
type best struct {
	hand
	baseline.AckAller
}

func (b best) leaseAll(ctx context.Context) (int, error) {
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

// refusal says whether an error is a system's way to say that a thing exists.
func refusal(err error) bool {
	return errors.Is(err, baseline.ErrRefused) || fault.CodeOf(err) == fault.Conflict
}

// seeded is how many rows a workload about distinct rows goes round.
const seeded = 10_000

func rowName(prefix string, i int) string { return fmt.Sprintf("%s-%06d", prefix, i) }
