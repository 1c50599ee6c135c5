package batches_test

import (
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/batches"
)

// Verifies that many who take and settle at once do each item once, and count right.
func TestManyWorkAtOnce(t *testing.T) {
	each(t, func(t *testing.T, s site) {
		const items, workers = 300, 8
		s.wallet(items)
		s.create(batches.New{Parallel: 6, Items: work(items, 1)})
		var all sync.WaitGroup
		var mu sync.Mutex
		done := make(map[string]int)
		for range workers {
			all.Go(func() {
				for {
					some, err := batches.Take(t.Context(), s.e, batches.Ask{Handlers: []string{"h"}, Holder: "me", Limit: 2})
					if err != nil {
						t.Error(err)
						return
					}
					for _, x := range some {
						if _, err := batches.Settle(t.Context(), s.e, x, nil); err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						done[x.Key]++
						mu.Unlock()
					}
					mu.Lock()
					n := len(done)
					mu.Unlock()
					if n == items {
						return
					}
				}
			})
		}
		all.Wait()
		for key, n := range done {
			if n != 1 {
				t.Errorf("%s was done %d times", key, n)
			}
		}
		s.is(batches.Completed, batches.Counts{Succeeded: items, Accepted: items}, items, 0, 0)
	})
}
