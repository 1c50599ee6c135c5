package keys

import (
	"context"
	"crypto/subtle"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

const (
	// cacheTTL is how long a read key is cached.
	cacheTTL = 2 * time.Second
	// readTimeout is the timeout of a read. Its result may be as old as the start of the read, so a
	// read must not take longer than a revocation may take to have effect.
	readTimeout = 4 * time.Second
	// maxKnown and maxUnknown are the numbers of cached keys and of cached unknown ids. They are
	// separate, so that guessing cannot evict valid keys.
	maxKnown   = 16384
	maxUnknown = 2048
)

// refused is the error for every text that is not a valid key. It is always the same, so that it
// does not reveal which part of a guess was right.
var refused = fault.New(fault.Auth, "the API key is missing or invalid: send a valid key in the Authorization header")

// Ring verifies the keys that callers present. It is safe for concurrent use.
//
// It caches a key for two seconds at most, counted from the start of the read, and no longer than
// the key was then valid by database time. So a revoked or expired key is refused on every node
// within five seconds, even if the database is slow. Concurrent requests for a key share one read.
// An unknown id takes the same path, with a hash that matches no secret.
type Ring struct {
	d     store.Doer
	now   func() time.Time // of this node; only used for the age of cache entries
	dummy string           // the hash for unknown ids, which matches no secret

	mu      sync.Mutex
	known   map[string]*entry
	unknown map[string]*entry
	reads   map[string]*pendingRead
}

// entry is a cached key. It is immutable.
type entry struct {
	key   Key // without an id if there is no such key
	hash  string
	good  bool          // neither revoked nor expired when it was read
	at    time.Time     // start of the read
	lasts time.Duration // from at
}

// pendingRead is a read in flight. Its result is set before done is closed.
type pendingRead struct {
	at    time.Time
	done  chan struct{}
	entry *entry
	err   error
}

type found struct {
	result
	hash string
	good bool  // neither revoked nor expired
	left int64 // until its expiry, in ms; -1 without expiry
}

// findVerb finds a key before its workspace is known.
var findVerb = store.NewVerb(store.Decl{Name: "keys.find", Lane: store.Read}, nil, store.TextArg("id"),
	func(f *found, r store.Row) error {
		return scanWith(&f.result, r, &f.key.Workspace, &f.hash, &f.good, &f.left, &f.key.origin)
	})

// hasValidVerb reports whether there is a valid key.
var hasValidVerb = store.VerbOf[struct{}](store.Decl{Name: "keys.has_valid", Lane: store.Read}, nil, store.ScanValue[bool])

// Any reports whether any workspace has a key that is valid now.
func Any(ctx context.Context, d store.Doer) (bool, error) {
	return hasValidVerb.DoAt(ctx, d, store.Partition{}, struct{}{})
}

// NewRing returns a ring with an empty cache.
func NewRing(d store.Doer) *Ring {
	return &Ring{d: d, now: clock.Now, dummy: hash(newSecret()), known: make(map[string]*entry),
		unknown: make(map[string]*entry), reads: make(map[string]*pendingRead)}
}

// Verify returns the key of a text. If it is not a valid key, the error is always the same
// [fault.Auth]; if the key cannot be read, it is another one.
func (r *Ring) Verify(ctx context.Context, presented string) (Key, error) {
	id, secret, ok := split(presented)
	if !ok {
		return Key{}, refused
	}
	e, err := r.lookup(ctx, id)
	if err != nil {
		return Key{}, err
	}
	same := subtle.ConstantTimeCompare([]byte(hash(secret)), []byte(e.hash)) == 1
	if !same || !e.good {
		return Key{}, refused
	}
	return e.key.clone(), nil
}

// lookup returns the cached entry of an id, or reads it.
func (r *Ring) lookup(ctx context.Context, id string) (*entry, error) {
	e, q := r.find(ctx, id)
	if e != nil {
		return e, nil
	}
	select {
	case <-q.done:
		return q.entry, q.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// find returns the cached entry, or the read to wait for. The read has its own goroutine, because
// its first caller may leave before the others.
func (r *Ring) find(ctx context.Context, id string) (*entry, *pendingRead) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for _, m := range []map[string]*entry{r.known, r.unknown} {
		if e := m[id]; e != nil && fresh(now, e.at, e.lasts) {
			return e, nil
		}
	}
	if q := r.reads[id]; q != nil && fresh(now, q.at, cacheTTL) {
		return nil, q
	}
	q := &pendingRead{at: now, done: make(chan struct{})}
	r.reads[id] = q
	go r.read(context.WithoutCancel(ctx), id, q)
	return nil, q
}

// fresh reports whether an entry has not expired. A clock that was set back expires it.
func fresh(now, at time.Time, lasts time.Duration) bool {
	age := now.Sub(at)
	return age >= 0 && age < lasts
}

// read reads a key and completes the pending read.
func (r *Ring) read(ctx context.Context, id string, q *pendingRead) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	f, err := findVerb.DoAt(ctx, r.d, store.Partition{}, id)
	if ctx.Err() != nil { // a late result is not used either
		err = fault.New(fault.Unavailable, "the database did not return the API key within %s: try again", readTimeout).AsRetryable().Wrap(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(q.done)
	if r.reads[id] == q {
		delete(r.reads, id)
	}
	if q.err = err; err == nil {
		q.entry = r.cache(id, q.at, f)
	}
}

// cache caches a read. REQUIRES: mu
func (r *Ring) cache(id string, at time.Time, f found) *entry {
	e := &entry{key: f.key, hash: f.hash, good: f.good, at: at, lasts: cacheTTL}
	if f.key.ID == "" {
		e.hash, e.good = r.dummy, false
		put(r.unknown, maxUnknown, id, e)
		return e
	}
	if f.left >= 0 && f.good {
		e.lasts = min(cacheTTL, time.Duration(f.left)*time.Millisecond)
	}
	put(r.known, maxKnown, id, e)
	return e
}

// put adds an entry. A full cache is emptied, because all of its entries expire within two seconds
// anyway.
func put(m map[string]*entry, most int, id string, e *entry) {
	if m[id] == nil && len(m) >= most {
		clear(m)
	}
	m[id] = e
}
