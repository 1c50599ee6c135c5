package keys

import "time"

// Remembered is how long a ring goes by what it read.
const Remembered = cacheTTL

// MostUnknown is how many ids that are no keys a ring remembers.
const MostUnknown = maxUnknown

// SetClock has a ring go by another clock.
func (r *Ring) SetClock(now func() time.Time) { r.now = now }

// Sizes are how many keys, unknown ids and questions a ring has in its memory.
func (r *Ring) Sizes() (known, unknown, reads int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.known), len(r.unknown), len(r.reads)
}

// NewText makes the text of a key that nobody has made.
func NewText() string { return join(newID(), newSecret()) }

// Hash is what is kept of a secret.
var Hash = hash
