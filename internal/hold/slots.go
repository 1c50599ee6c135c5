package hold

import "context"

// Slots is room for things that are done at once.
type Slots chan struct{}

// NewSlots returns room for n, or for one.
func NewSlots(n int) Slots { return make(Slots, max(n, 1)) }

// Reserve waits for room, and takes all that there is.
func (s Slots) Reserve(ctx context.Context) (room int, err error) {
	if err := s.One(ctx); err != nil {
		return 0, err
	}
	for room = 1; room < cap(s); room++ {
		select {
		case s <- struct{}{}:
		default:
			return room, nil
		}
	}
	return room, nil
}

// One waits for room, and takes it for one.
func (s Slots) One(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Try takes room for one, if there is any.
func (s Slots) Try() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

// Free gives room back.
func (s Slots) Free(n int) {
	for range n {
		<-s
	}
}
