package handlers

import (
	"context"
	"log/slog"

	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Topic is what those are woken by who serve handlers, when there are others.
const Topic = "handlers"

// parallel is how many handlers a node calls at once for reactions. One reaction in one workspace has half of it at the
// most.
const parallel = 128

// Engine is what serves handlers.
type Engine interface {
	reactions.Engine
	Hub() *wake.Hub
	Log() *slog.Logger
	Node() string
	Background(func(context.Context))
	Shared(key any, make func() any) any
}

type workerKey struct{}

// Worker is the one that calls handlers elsewhere for the reactions and after-effects
// that they serve. It is one beside the engine's own: a handler that does not answer
// takes up a body until its time is over, and would hold up the program's reactions.
func Worker(e Engine) *reactions.Worker {
	return e.Shared(workerKey{}, func() any {
		w := &reactions.Worker{Engine: e, Hub: e.Hub(), Log: e.Log(), Name: e.Node(), Parallel: parallel, ByHandler: true, Idle: true}
		e.Background(w.Run)
		return w
	}).(*reactions.Worker)
}

var urlsVerb = store.NewVerb(store.Decl{Name: "handlers.urls", Lane: store.Read}, nil,
	func(_ struct{}, _ *store.Args) {},
	func(all *[]string, row store.Row) error {
		var name string
		err := row.Scan(&name)
		*all = append(*all, name)
		return err
	})

// URLs returns the names that are those of URLs, in whatever workspace.
func URLs(ctx context.Context, d store.Doer) (map[string]bool, error) {
	shards, err := store.Shards(ctx, d)
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	for _, shard := range shards {
		all, err := urlsVerb.DoAt(ctx, d, store.Place{Shard: shard}, struct{}{})
		if err != nil {
			return nil, err
		}
		for _, name := range all {
			names[name] = true
		}
	}
	return names, nil
}
