package remotehandler

import (
	"context"
	"log/slog"

	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Topic is what those are woken by who serve handlers, when there are others.
const Topic = "handlers"

// Engine is what serves handlers.
type Engine interface {
	store.Doer
	Hub() *wake.Hub
	Log() *slog.Logger
	Background(func(context.Context))
	Shared(key any, make func() any) any
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
		all, err := urlsVerb.DoAt(ctx, d, store.Partition{Shard: shard}, struct{}{})
		if err != nil {
			return nil, err
		}
		for _, name := range all {
			names[name] = true
		}
	}
	return names, nil
}
