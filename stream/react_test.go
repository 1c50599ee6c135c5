package stream_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/stream"
)

// Verifies that the progress of a reaction is found from its registration on, and that of an unknown
// one is ErrNotFound, not zero.
func TestProgressOfAnUnknownReaction(t *testing.T) {
	none := func(context.Context, *stream.Delivery) error { return nil }
	holdfasttest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		if p, err := stream.GetProgress(t.Context(), e, "known"); err != nil || p != (stream.Progress{}) {
			t.Errorf("a reaction without streams: got %+v, %v", p, err)
		}
		for _, name := range []string{"unknown", ""} {
			if _, err := stream.GetProgress(t.Context(), e, name); !errors.Is(err, holdfast.ErrNotFound) {
				t.Errorf("reaction %q: got %v, want ErrNotFound", name, err)
			}
		}
	}, stream.React("known", stream.Select{}, none, stream.Options{Priority: -5 * time.Second}))
}

// Verifies that a priority that cannot be stored is refused when the engine opens.
func TestPriorityOfWholeSeconds(t *testing.T) {
	none := func(context.Context, *stream.Delivery) error { return nil }
	for _, p := range []time.Duration{time.Millisecond, 1500 * time.Millisecond, time.Hour} {
		_, err := holdfast.Open(t.Context(), holdfasttest.At(holdfasttest.SQLite(t)), holdfast.Config{}, stream.React("r", stream.Select{}, none, stream.Options{Priority: p}))
		if !errors.Is(err, holdfast.ErrValidation) {
			t.Errorf("priority %s: got %v, want ErrValidation", p, err)
		}
	}
}
