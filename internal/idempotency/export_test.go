package idempotency

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/store"
)

// RenewOnce renews the key of a flight once, as [Flight.Renewing] does periodically.
func (f *Flight) RenewOnce(ctx context.Context) error { return f.renew(ctx) }

// Fence runs the check before an operation of the flight begins.
func (f *Flight) Fence(ctx context.Context, tx *store.Tx) error { return f.fence(ctx, tx) }
