package feed_test

import (
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/feed"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

// Verifies that a page of the feed with a small byte budget still has one event and continues after it: a
// reader that got none would take that for the end.
func TestAPageOfFewBytesHasOne(t *testing.T) {
	storetest.Each(t, func(t *testing.T, hf *holdfast.Engine) {
		if err := feed.Open(t.Context(), engine.Of(hf)); err != nil {
			t.Fatal(err)
		}
		write(t, hf, "s", 5)
		stepAll(t, hf)
		for bytes := 1; bytes < 200; bytes += 20 {
			p, err := feed.Read(store.NewBudget(bytes).In(t.Context()), engine.Of(hf), 1, 3)
			if err != nil || len(p.Items) == 0 || p.Items[0].Position != 2 || p.Next != p.Items[len(p.Items)-1].Position {
				t.Errorf("%d bytes: got page %+v, error %v", bytes, p, err)
			}
		}
		for limit, want := range map[int]int{3: 3, 4: 4, 100: 4} {
			if p, err := feed.Read(t.Context(), engine.Of(hf), 1, limit); err != nil || len(p.Items) != want || p.Next != int64(1+want) {
				t.Errorf("limit %d: got %d items, next %d, error %v", limit, len(p.Items), p.Next, err)
			}
		}
	})
}
