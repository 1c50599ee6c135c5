package lease

import "context"

// Slots is a semaphore for concurrent operations.
type Slots chan struct{}

// NewSlots returns n slots, at least one.
func NewSlots(n int) Slots { return make(Slots, max(n, 1)) }

// One waits for a free slot and takes it.
func (s Slots) One(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Free frees n slots.
func (s Slots) Free(n int) {
	for range n {
		<-s
	}
}
