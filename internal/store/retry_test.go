package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Verifies that a call whose context ends between two attempts is told what held it up.
func TestARetryThatEndsTellsWhatHeldItUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tries := 0
	err := store.Retry(ctx, func() error {
		if tries++; tries == 1 {
			return fault.New(fault.Unavailable, "busy").Repeatable()
		}
		cancel()
		return ctx.Err()
	})
	if tries != 2 || !errors.Is(err, context.Canceled) || fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("after %d tries: %v", tries, err)
	}
}
