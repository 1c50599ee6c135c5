package effects

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/store"
)

type pruneArgs struct {
	upto  string        `arg:"upto"`
	age   time.Duration `arg:"age"`
	limit int           `arg:"limit"`
}

var pruneVerb = store.VerbOf[pruneArgs](store.Decl{Name: "effects.prune", Lane: store.Work}, nil, store.CountRows)

// Prune deletes effects of operations that ended longer ago than keep, at most limit on each shard, and reports whether there may be
// more. Effects of an operation that has not ended, or of which a person has not seen a contradiction, stay.
func Prune(ctx context.Context, d store.Doer, keep time.Duration, limit int) (n int, more bool, err error) {
	status, err := store.Ask.DoAt(ctx, d, store.Partition{}, struct{}{})
	if err != nil {
		return 0, false, err
	}
	a := pruneArgs{store.FirstID(status.Now.Add(-keep)).String(), keep, limit}
	n, err = store.Sweep(ctx, d, func(at store.Partition) (int, error) {
		n, err := pruneVerb.DoAt(ctx, d, at, a)
		more = more || n == limit
		return n, err
	})
	return n, more, err
}
