package lease

import "context"

// Slots is room for things that are done at once.
type Slots chan struct{}

// NewSlots returns room for n, or for one.
func NewSlots(n int) Slots { return make(Slots, max(n, 1)) }

// One waits for room, and takes it for one.
func (s Slots) One(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Free gives room back.
func (s Slots) Free(n int) {
	for range n {
		<-s
	}
}
