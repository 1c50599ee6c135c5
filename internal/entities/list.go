package entities

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/store"
)

type listArgs struct {
	lifecycle, status, behind string
	limit                     int
}

var listVerb = store.NewVerb(store.Decl{Name: "entities.list", Lane: store.Read}, nil,
	func(a listArgs, args *store.Args) {
		args.Text("lifecycle", a.lifecycle)
		args.Text("status", a.status)
		args.Text("after", a.behind)
		args.Int("limit", int64(a.limit))
	},
	ScanOpen)

// List returns entities of a lifecycle in the order of their ids, behind one of them:
// those in a status, or all.
func List(ctx context.Context, d store.Doer, lifecycle, status, behind string, limit int) ([]Entity, error) {
	if limit <= 0 || limit > 1000 {
		limit = 100
	}
	return listVerb.Do(ctx, d, listArgs{lifecycle, status, behind, limit})
}
