package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/baseline"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/scope"
)

// The systems, by the names that the results have.
const (
	ours      = "holdfast"
	sqlOne    = "sql"
	sqlBest   = "sql-best"
	sqlLocked = "sql-locked" // one lock over all appends

	oursLocked = "holdfast-locked" // the same, with Holdfast's own appends
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
	// takeRun starts a run of five plain steps under a key, and takes it to its end.
	takeRun(ctx context.Context, key string) error
	// awaitRun starts a run of three plain steps under a key, and waits for its end.
	awaitRun(ctx context.Context, key string) error
	batcher
}

// ack settles one item that was taken.
type ack func(context.Context) error

func each[T any](all []T, f func(context.Context, T) error) []ack {
	acks := make([]ack, len(all))
	for i, t := range all {
		acks[i] = func(ctx context.Context) error { return f(ctx, t) }
	}
	return acks
}

const (
	lifecycle = "invoice"
	kind      = "org"
	field     = "count"
	queue     = "mail"
	holder    = "bench"
	output    = `{"ok":true}`
	payload   = `{"amount":4200,"currency":"EUR"}`
)

// kernel is Holdfast, by the calls that its capabilities make.
type kernel struct{ hf *holdfast.Engine }

func (e kernel) create(ctx context.Context, id string) error {
	_, err := entities.Create(ctx, engine.Of(e.hf), entities.CreateArgs{Lifecycle: lifecycle, ID: id, Status: "open", Data: []byte(payload)})
	return err
}

func (e kernel) transition(ctx context.Context, id, from, to string) error {
	_, err := entities.Transition(ctx, engine.Of(e.hf), entities.TransitionArgs{Lifecycle: lifecycle, ID: id, From: []string{from}, To: to, Event: "moved"})
	return err
}

func (e kernel) append(ctx context.Context, stream string, want int64) error {
	_, err := events.Append(ctx, engine.Of(e.hf), events.AppendArgs{Stream: stream, ExpectVersion: &want, Events: []events.Event{{Name: "paid", Data: []byte(payload)}}})
	return err
}

// locked is Holdfast with one lock over all appends, to show what that costs.
type locked struct{ kernel }

func (l locked) create(ctx context.Context, id string) error {
	return l.kernel.create(holdfast.InWorkspace(ctx, oursLocked), id)
}

func (l locked) append(ctx context.Context, stream string, want int64) error {
	return l.hf.Update(holdfast.InWorkspace(ctx, oursLocked), func(ctx context.Context, tx holdfast.Tx) error {
		if _, err := postgres.Raw(tx).Exec(ctx, "SELECT pg_advisory_xact_lock(8101979)"); err != nil {
			return err
		}
		_, err := events.Append(ctx, store.DoerOf(tx), events.AppendArgs{Stream: stream, ExpectVersion: &want, Events: []events.Event{{Name: "paid", Data: []byte(payload)}}})
		return err
	})
}

func (e kernel) inc(ctx context.Context, id string) error {
	_, err := scope.In[map[string]int64](e.hf, kind, id).Inc(ctx, field, 1)
	return err
}

func (e kernel) put(ctx context.Context, id string) error {
	_, err := scopestore.Put(ctx, engine.Of(e.hf), scopestore.PutArgs{Kind: kind, ID: id, State: []byte(`{"` + field + `":0}`)})
	return err
}

// hand is one of the systems written by hand.
type hand struct{ baseline.System }

func (h hand) create(ctx context.Context, id string) error {
	_, err := h.Create(ctx, baseline.New{Lifecycle: lifecycle, ID: id, Status: "open", Data: payload})
	return err
}

func (h hand) transition(ctx context.Context, id, from, to string) error {
	_, err := h.Transition(ctx, baseline.Move{Lifecycle: lifecycle, ID: id, From: from, To: to, Event: "moved"})
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
		err = fmt.Errorf("%d of %d tasks were acknowledged", n, len(all))
	}
	return n, err
}

// buyer is a system that has wallets. Holdfast has none yet.
type buyer interface {
	wallet(ctx context.Context, id string) error
	// take takes an item and reserves its cost, settle pays for it.
	take(ctx context.Context, id, wallet, from string) error
	settle(ctx context.Context, id, wallet, to string) error
}

const cost = 7

func (h hand) wallet(ctx context.Context, id string) error { return h.PutWallet(ctx, id, 1<<50) }

func (h hand) take(ctx context.Context, id, wallet, from string) error {
	_, err := h.Buy(ctx, baseline.Move{Lifecycle: lifecycle, ID: id, From: from, To: "taken", Event: "taken"}.Take(wallet, cost))
	return err
}

func (h hand) settle(ctx context.Context, id, wallet, to string) error {
	_, err := h.Buy(ctx, baseline.Move{Lifecycle: lifecycle, ID: id, From: "taken", To: to, Event: "settled"}.Settle(wallet, cost))
	return err
}

// refusal says whether an error is a system's way to say that a thing exists.
func refusal(err error) bool {
	return errors.Is(err, baseline.ErrRefused) || fault.CodeOf(err) == fault.Conflict
}

// seeded is how many rows a workload about distinct rows goes round.
const seeded = 10_000

func rowName(i int) string { return fmt.Sprintf("r-%06d", i) }
