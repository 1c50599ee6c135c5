package idempotency

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/store"
)

// RenewOnce renews the key of a flight, as [Flight.Keep] does all the time.
func (f *Flight) RenewOnce(ctx context.Context) error { return f.renew(ctx) }

// Fence is what an operation of the flight's asks before it begins.
func (f *Flight) Fence(ctx context.Context, tx *store.Tx) error { return f.fence(ctx, tx) }
