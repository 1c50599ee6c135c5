package reactions_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/reactions"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

// TestMarksInFrontAreGathered verifies that due notices before the collector's cursor
// are collected too: new streams with rising names must not starve older ones.
func TestMarksInFrontAreGathered(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		ctx := context.Background()
		enlist(t, hf, "r")
		var g reactions.Collector
		next := func() {
			t.Helper()
			if _, err := g.Next(ctx, engine.Of(hf), store.Partition{}, []lease.Turn{{Name: "r", Workspace: "default"}}); err != nil {
				t.Fatal(err)
			}
		}
		emit(t, hf, "s-0010", "x")
		next()
		emit(t, hf, "s-0001", "x")
		for i := range 2 {
			emit(t, hf, fmt.Sprint("s-002", i), "x")
			next()
		}
		if positionOf(t, hf, "r", "s-0001") == nil {
			t.Error("the due notice was not collected")
		}
	})
}
