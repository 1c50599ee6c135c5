package remotehandler

import (
	"context"
	"log/slog"

	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/wake"
)

// Engine is the part of the engine that serving handlers needs.
type Engine interface {
	store.Doer
	Hub() *wake.Hub
	Log() *slog.Logger
	Background(func(context.Context))
	Shared(key any, make func() any) any
}

var listURLHandlersVerb = store.NewVerb(store.Decl{Name: "handlers.list_url_handlers", Lane: store.Read}, nil,
	func(_ struct{}, _ *store.Args) {},
	func(all *[]string, row store.Row) error {
		var name string
		err := row.Scan(&name)
		*all = append(*all, name)
		return err
	})

// URLs returns the names of the http handlers of all workspaces.
func URLs(ctx context.Context, d store.Doer) (map[string]bool, error) {
	shards, err := store.Shards(ctx, d)
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	for _, shard := range shards {
		all, err := listURLHandlersVerb.DoAt(ctx, d, store.Partition{Shard: shard}, struct{}{})
		if err != nil {
			return nil, err
		}
		for _, name := range all {
			names[name] = true
		}
	}
	return names, nil
}
