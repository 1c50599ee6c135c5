package entities

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Filter selects entities of a lifecycle; empty fields match all.
type Filter struct {
	Status string
	store.Times
}

type listArgs struct {
	Filter
	lifecycle, after string
	scan, limit      int
}

var listVerb = store.NewVerb(store.Decl{Name: "entities.list", Lane: store.Read}, nil,
	func(a listArgs, args *store.Args) {
		args.Text("lifecycle", a.lifecycle)
		args.Text("status", a.Status)
		args.Text("after", a.after)
		args.Text("last", store.Last)
		args.Int("scan", int64(a.scan))
		args.Int("limit", int64(a.limit))
		a.Bind(args)
	},
	func(all *[]store.Found[Entity], row store.Row) error {
		var f store.Found[Entity]
		err := scanPlanned(&f.Row, row, &f.Wanted, &f.Edge, &f.Row.Lifecycle, &f.Row.ID)
		*all = append(*all, f)
		return err
	})

// List returns entities of a lifecycle in the order of their ids, starting after one of them. A filter searches (store.Found).
func List(ctx context.Context, d store.Doer, lifecycle string, f Filter, after string, limit int) ([]store.Found[Entity], error) {
	if limit <= 0 || limit > 1000 {
		limit = 100
	}
	a := listArgs{Filter: f, lifecycle: lifecycle, after: after, scan: store.SearchScan, limit: limit}
	if f == (Filter{}) {
		a.scan = limit
	}
	return listVerb.Do(ctx, d, a)
}
