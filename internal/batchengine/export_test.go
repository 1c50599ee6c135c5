package batchengine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/clock"
)

// Waiting returns how many finished items wait for others to be settled.
func (w *Worker) Waiting() (n int) {
	w.settler.mu.Lock()
	defer w.settler.mu.Unlock()
	for _, c := range w.settler.calls {
		n += len(c.waiting)
	}
	return n
}

// Remember makes r remember for d, instead of a moment.
func (r *Recent) Remember(d time.Duration) { r.until = clock.Now().Add(d) }

// Known returns the ids of the batches that r remembers.
func (r *Recent) Known() (ids []string) {
	for _, b := range r.get() {
		ids = append(ids, b.ID)
	}
	return ids
}
