package lease

import (
	"context"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Intervention is what an operator does to an operation without its holder: a release, a withdrawal or a resolution.
type Intervention struct {
	Reason, Actor string
	Epoch         *int64 // of the lease that the caller has seen, nil for any
	// Also is written in the same transaction, which it can refuse; it may be nil.
	Also func(context.Context, *store.Tx) error
}

// Write runs Also, if it is set.
func (r Intervention) Write(ctx context.Context, tx *store.Tx) error {
	if r.Also == nil {
		return nil
	}
	return r.Also(ctx, tx)
}

// Check returns an error if the lease now has another epoch: the request was for an earlier holder.
func (r Intervention) Check(operation string, now int64) error {
	switch {
	case r.Epoch == nil || *r.Epoch == now && now > 0:
		return nil
	case *r.Epoch < 1:
		return fault.New(fault.Validation, "the epoch of a lease must be at least 1, got %d", *r.Epoch).With("pointer", "/epoch")
	}
	return fault.New(fault.Concurrency, "the lease of operation %s has epoch %d, not %d: read the operation again", operation, now, *r.Epoch).With("epoch", now)
}
