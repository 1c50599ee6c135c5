package stream_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
	"github.com/holdfast-go/holdfast/stream"
)

// Verifies that a read ends with the event that spends its budget, that an event larger than the budget is read
// alone, and that a read without a budget, also of the same statement, is whole.
func TestABudgetEndsARead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *holdfast.Engine) {
		data := []byte(`"` + strings.Repeat("x", 1000) + `"`)
		for range 10 {
			if _, err := stream.Append(t.Context(), e, "s", stream.Any, stream.Event{Name: "n", Data: data}); err != nil {
				t.Fatal(err)
			}
		}
		read := func(ctx context.Context, d holdfast.Doer, want int, cut bool) {
			t.Helper()
			got, err := events.Read(ctx, store.DoerOf(d), events.ReadArgs{Stream: "s", From: 3, Limit: 5})
			if err != nil || len(got) != want || got[0].Version != 3 || store.Cut(ctx) != cut {
				t.Errorf("read %d events, %v, cut %v; want %d, cut %v", len(got), err, store.Cut(ctx), want, cut)
			}
		}
		for _, c := range []struct {
			bytes, want int
			cut         bool
		}{{1, 1, true}, {2500, 3, true}, {1 << 20, 5, false}} {
			t.Run(fmt.Sprint(c.bytes), func(t *testing.T) {
				b := store.NewBudget(c.bytes)
				read(b.In(t.Context()), e, c.want, c.cut)
				b.Refill()
				if err := e.Update(b.In(t.Context()), func(ctx context.Context, tx holdfast.Tx) error {
					read(b.In(ctx), tx, c.want, c.cut)
					read(store.Whole(b.In(ctx)), tx, 5, false)
					return nil
				}); err != nil {
					t.Error(err)
				}
				read(t.Context(), e, 5, false)
			})
		}
	})
}
