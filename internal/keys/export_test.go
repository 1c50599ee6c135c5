package keys

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/store"
)

// Remembered is how long a ring caches a key.
const Remembered = cacheTTL

// MostUnknown is the number of unknown ids that a ring caches.
const MostUnknown = maxUnknown

// MaxLimiters is the number of limiters that are kept.
const MaxLimiters = maxLimiters

// SetClock sets the clock of a ring.
func (r *Ring) SetClock(now func() time.Time) { r.now = now }

// Sizes returns the numbers of cached keys, cached unknown ids and pending reads.
func (r *Ring) Sizes() (known, unknown, reads int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.known), len(r.unknown), len(r.reads)
}

// NewText returns the text of a key that does not exist.
func NewText() string { return join(newID(), newSecret()) }

// Hash returns the stored form of a secret.
func Hash(secret string) string { return hash(secret, Restrictions{}) }

// CheckSessions returns an error unless a key has a number of sessions. It deletes them.
func CheckSessions(ctx context.Context, d store.Doer, key string, want int) error {
	n, err := deleteOldestVerb.Do(ctx, d, deleteOldestArgs{sessionArgs{key, ""}, 0})
	if err == nil && n != want {
		err = fmt.Errorf("key has %d sessions, want %d", n, want)
	}
	return err
}
