package lease_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/lease"
)

// TestRepeat verifies that pages are repeated while there is more, with pauses as long as the pages, and that pages and pauses
// together stay within the limit, whatever the limit is; that a page which fails ends it, and that a pause ends with the context.
func TestRepeat(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		name         string
		page, limit  time.Duration
		pages, until int // pages that there are, and the one that fails
		want         int
		took         time.Duration
		err          error
	}{
		{"until there is no more", time.Millisecond, time.Second, 4, 0, 4, 7 * time.Millisecond, nil},
		{"until the limit", 100 * time.Millisecond, time.Second, 1000, 0, 5, 900 * time.Millisecond, nil},
		{"until the longest limit", time.Second, time.Hour, 1000, 0, 3, 5 * time.Second, nil},
		{"a slow page is the only one", 4 * time.Second, time.Hour, 1000, 0, 1, 4 * time.Second, nil},
		{"until a failure", time.Millisecond, time.Second, 4, 2, 2, 3 * time.Millisecond, failed},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, begun := 0, clock.OfMachine()
				sum, err := new(lease.Pages).Repeat(t.Context(), c.limit, func(ctx context.Context, _ int) (int, bool, error) {
					_ = clock.Wait(ctx, c.page)
					if n++; n == c.until {
						return 1, true, failed
					}
					return 1, n < c.pages, nil
				})
				if took := clock.OfMachine().Sub(begun); sum != c.want || took != c.took || !errors.Is(err, c.err) {
					t.Errorf("got %d pages in %s, error %v, want %d in %s, error %v", sum, took, err, c.want, c.took, c.err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := new(lease.Pages).Repeat(ctx, time.Hour, func(ctx context.Context, _ int) (int, bool, error) {
			_ = clock.Wait(ctx, time.Second)
			cancel()
			return 1, true, nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the pause ended with %v, want the context's error", err)
		}
	})
}

// TestPagesAdapt verifies that pages grow while they are fast, shrink while they are slow, and have at least 200 rows and at most 2,000.
func TestPagesAdapt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pages lease.Pages
		sizes := func(took time.Duration, n int) (all []int) {
			_, err := pages.Repeat(t.Context(), time.Hour, func(ctx context.Context, size int) (int, bool, error) {
				all = append(all, size)
				return size, len(all) < n, clock.Wait(ctx, took)
			})
			if err != nil {
				t.Error(err)
			}
			return all
		}
		for _, c := range []struct {
			took time.Duration
			want []int
		}{
			{time.Millisecond, []int{200, 400, 800, 1600, 2000, 2000}},
			{50 * time.Millisecond, []int{2000, 1000, 500, 250, 200, 200}},
		} {
			if got := sizes(c.took, len(c.want)); !slices.Equal(got, c.want) {
				t.Errorf("pages of %s have %v rows, want %v", c.took, got, c.want)
			}
		}
	})
}
