package reactions_test

import (
	"context"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/stream"
)

// TestAnEventReachesItsReaction verifies that appended events are delivered once and in
// order, and acknowledged.
func TestAnEventReachesItsReaction(t *testing.T) {
	onEach(t, func(t *testing.T, db string) {
		var y deliveryLog
		hf := startNode(t, databaseAt(db), briskly, stream.React("r", stream.Select{}, func(_ context.Context, d *stream.Delivery) error {
			y.write(d)
			return nil
		}, stream.Options{}))
		var want []stream.Version
		for v := range stream.Version(10) {
			emit(t, hf, "a", "n")
			waitForPosition(t, hf, "r", "a", "is acknowledged", handled(v))
			want = append(want, v)
		}
		if got, _, _ := y.of("a"); !slices.Equal(got, want) {
			t.Errorf("delivered %v, want %v", got, want)
		}
	})
}
