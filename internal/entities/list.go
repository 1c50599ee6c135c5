package entities

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/store"
)

type listArgs struct {
	lifecycle string `arg:"lifecycle"`
	status    string `arg:"status"`
	after     string `arg:"after"`
	limit     int    `arg:"limit"`
}

var listVerb = store.VerbOf[listArgs](store.Decl{Name: "entities.list", Lane: store.Read}, nil, ScanOpen)

// List returns entities of a lifecycle in the order of their ids, starting after one of them: those in a
// status, or all.
func List(ctx context.Context, d store.Doer, lifecycle, status, after string, limit int) ([]Entity, error) {
	if limit <= 0 || limit > 1000 {
		limit = 100
	}
	return listVerb.Do(ctx, d, listArgs{lifecycle, status, after, limit})
}
