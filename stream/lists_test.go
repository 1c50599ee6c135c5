package stream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/stream"
)

// TestPositionsOfNothing verifies that the positions of a reaction that does not exist are ErrNotFound, and that an unknown
// source is ErrValidation, also for a repair.
func TestPositionsOfNothing(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		ctx := t.Context()
		if _, err := holdfast.Collect(stream.ListPositions(ctx, e, stream.PositionFilter{Reaction: "none"})); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
		if _, err := holdfast.Collect(stream.ListPositions(ctx, e, stream.PositionFilter{Source: "histories"})); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("unknown source: got %v, want ErrValidation", err)
		}
		if _, err := stream.Skip(ctx, e, "*", stream.PositionFilter{Source: "histories"}); !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("repair with an unknown source: got %v, want ErrValidation", err)
		}
	})
}

// TestALongestPauseBelowTheFirstIsRefused verifies that a reaction refuses a policy whose fields contradict each other.
func TestALongestPauseBelowTheFirstIsRefused(t *testing.T) {
	r := stream.React("r", stream.Select{}, func(context.Context, *stream.Delivery) error { return nil },
		stream.Options{Retry: holdfast.RetryPolicy{Backoff: 10 * time.Second, MaxBackoff: 5 * time.Second}})
	if _, err := holdfast.Open(t.Context(), holdfasttest.At(holdfasttest.SQLite(t)), holdfast.Config{}, r); !errors.Is(err, holdfast.ErrValidation) {
		t.Errorf("got %v, want ErrValidation", err)
	}
}
