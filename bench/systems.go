package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/baseline"
	"github.com/holdfast-go/holdfast/internal/entities"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/scopes"
)

// The systems, by the names that the results have.
const (
	ours    = "holdfast"
	sqlOne  = "sql"
	sqlBest = "sql-best"
)

// system does the units of the workloads. A call that is refused is an error:
// the workloads ask for nothing that must be.
type system interface {
	create(ctx context.Context, id string) error
	transition(ctx context.Context, id, from, to string) error
	append(ctx context.Context, stream string, want int64) error
	inc(ctx context.Context, id string) error
	put(ctx context.Context, id string) error
}

const (
	lifecycle = "invoice"
	kind      = "org"
	field     = "count"
	payload   = `{"amount":4200,"currency":"EUR"}`
)

// engine is Holdfast, by the calls that its capabilities make.
type engine struct{ hf *holdfast.Engine }

func (e engine) create(ctx context.Context, id string) error {
	_, err := entities.Create(ctx, e.hf, entities.CreateArgs{Lifecycle: lifecycle, ID: id, Status: "open", Data: []byte(payload)})
	return err
}

func (e engine) transition(ctx context.Context, id, from, to string) error {
	_, err := entities.Transition(ctx, e.hf, entities.TransitionArgs{Lifecycle: lifecycle, ID: id, From: []string{from}, To: to, Event: "moved"})
	return err
}

func (e engine) append(ctx context.Context, stream string, want int64) error {
	_, err := events.Append(ctx, e.hf, events.AppendArgs{Stream: stream, Want: &want, Events: []events.Event{{Name: "paid", Data: []byte(payload)}}})
	return err
}

func (e engine) inc(ctx context.Context, id string) error {
	_, err := scopes.Inc(ctx, e.hf, scopes.IncArgs{Kind: kind, ID: id, Field: field, By: 1})
	return err
}

func (e engine) put(ctx context.Context, id string) error {
	_, err := scopes.Put(ctx, e.hf, scopes.PutArgs{Kind: kind, ID: id, State: []byte(`{"` + field + `":0}`)})
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

// refusal says whether an error is a system's way to say that a thing exists.
func refusal(err error) bool {
	return errors.Is(err, baseline.ErrRefused) || fault.CodeOf(err) == fault.Conflict
}

// seeded is how many rows a workload about distinct rows goes round.
const seeded = 10_000

func rowName(i int) string { return fmt.Sprintf("r-%06d", i) }
