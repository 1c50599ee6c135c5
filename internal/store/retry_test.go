package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Verifies that a call whose context ends between two attempts returns the error that delayed it.
func TestARetryThatEndsTellsWhatHeldItUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	attempts := 0
	err := store.Retry(ctx, func() error {
		if attempts++; attempts == 1 {
			return fault.New(fault.Unavailable, "busy").AsRetryable()
		}
		cancel()
		return ctx.Err()
	})
	if attempts != 2 || !errors.Is(err, context.Canceled) || fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("after %d attempts: got error %v", attempts, err)
	}
}
