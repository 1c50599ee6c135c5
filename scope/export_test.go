package scope

import "context"

// Queued is how many are at the container of a handle, inside and waiting.
func Queued[T any](ctx context.Context, s Scope[T]) int {
	l := &s.handle.backend.state().queues
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.by[s.handle.container(ctx)]; q != nil {
		return q.inside + len(q.waiting)
	}
	return 0
}

// Kept is how many scopes a store in memory holds, also those that have ended.
func Kept(s *Store) int {
	m := s.backend.(*memoryBackend)
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.cells)
}
