package keys

import (
	"context"
	"crypto/subtle"
	"sync"
	"sync/atomic"
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
	// maxKnown and maxUnknown are the numbers of cached keys and sessions and of cached unknown ids. They are
	// separate, so that guessing cannot evict valid ones.
	maxKnown   = 16384
	maxUnknown = 2048
)

// refused is the error for every text that is not a valid key or session. It is always the same, so that it
// does not reveal which part of a guess was right.
var refused = fault.New(fault.Auth, "the API key is missing or invalid: send a valid key in the Authorization header")

// Ring verifies the keys and sessions that callers present. It is safe for concurrent use.
//
// It caches a key for two seconds at most, counted from the start of the read, and no longer than
// the key was then valid by database time. So a revoked or expired key is refused on every node
// within five seconds, even if the database is slow. Concurrent requests for a key share one read. A
// session is cached in the same way, and is valid only while its key is.
//
// An unknown id takes the same path, with a hash that matches no secret.
type Ring struct {
	d     store.Doer
	now   func() time.Time // of this node; only used for the age of cache entries
	dummy string           // the hash for unknown ids, which matches no secret

	mu      sync.Mutex
	known   map[string]*entry
	unknown map[string]*entry
	reads   map[string]*pendingRead
	uses    map[string]use // by key
}

// entry is a cached key or session. It is immutable, except for used.
type entry struct {
	found
	at    time.Time     // start of the read
	lasts time.Duration // from at
	used  atomic.Bool   // its use is noted
}

// matches reports whether the entry is valid and has the secret. The restrictions are those of the key.
func (e *entry) matches(secret string, r Restrictions) bool {
	same := subtle.ConstantTimeCompare([]byte(hash(secret, r)), []byte(e.hash)) == 1
	return same && e.good
}

// pendingRead is a read in flight. Its result is set before done is closed.
type pendingRead struct {
	at    time.Time
	done  chan struct{}
	entry *entry
	err   error
}

// found is what a read found: a key or a session.
type found struct {
	result
	session Session
	known   bool // it exists
	hash    string
	good    bool  // neither revoked nor expired
	left    int64 // until its expiry, in ms; -1 without expiry
}

// findVerb finds a key before its workspace is known.
var findVerb = store.NewVerb(store.Decl{Name: "keys.find", Lane: store.Read}, nil, store.TextArg("id"),
	func(f *found, r store.Row) error {
		f.known = true
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
	return &Ring{d: d, now: clock.Now, dummy: hash(newSecret(), Restrictions{}), known: make(map[string]*entry),
		unknown: make(map[string]*entry), reads: make(map[string]*pendingRead), uses: make(map[string]use)}
}

// Verify returns the key of a text. If it is not a valid key, the error is always the same
// [fault.Auth]; if the key cannot be read, it is another one.
func (r *Ring) Verify(ctx context.Context, presented string) (Key, error) {
	id, secret, ok := split(presented)
	if !ok {
		return Key{}, refused
	}
	e, err := r.lookupKey(ctx, id)
	if err != nil {
		return Key{}, err
	}
	if !e.matches(secret, e.key.Restrictions) {
		return Key{}, refused
	}
	return r.used(e), nil
}

// VerifySession returns the session of a text, and its key. If it is not a valid session of a valid key, the error is
// always the same [fault.Auth]; if they cannot be read, it is another one.
func (r *Ring) VerifySession(ctx context.Context, presented string) (Key, Session, error) {
	key, id, secret, ok := splitSession(presented)
	if !ok {
		return Key{}, Session{}, refused
	}
	k, err := r.lookupKey(ctx, key)
	if err != nil {
		return Key{}, Session{}, err
	}
	if !k.good {
		return Key{}, Session{}, refused
	}
	e, err := r.lookup(ctx, sessionEntry(key, id), func(ctx context.Context) (found, error) {
		return findSessionVerb.Do(store.InWorkspace(ctx, k.key.Workspace), r.d, sessionArgs{key, id})
	})
	if err != nil {
		return Key{}, Session{}, err
	}
	if !e.matches(secret, k.key.Restrictions) {
		return Key{}, Session{}, refused
	}
	s := e.session
	s.ID, s.Key = id, key
	return r.used(k), s, nil
}

// Forget removes a session from the cache.
func (r *Ring) Forget(s Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, sessionEntry(s.Key, s.ID))
}

// sessionEntry is the name of a session in the cache. It is not that of a key, because it has an underscore.
func sessionEntry(key, id string) string { return key + "_" + id }

func (r *Ring) lookupKey(ctx context.Context, id string) (*entry, error) {
	return r.lookup(ctx, id, func(ctx context.Context) (found, error) {
		return findVerb.DoAt(ctx, r.d, store.Partition{}, id)
	})
}

// load reads a key or a session.
type load func(context.Context) (found, error)

// lookup returns the cached entry of an id, or reads it.
func (r *Ring) lookup(ctx context.Context, id string, load load) (*entry, error) {
	e, q := r.find(ctx, id, load)
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
func (r *Ring) find(ctx context.Context, id string, load load) (*entry, *pendingRead) {
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
	go r.read(context.WithoutCancel(ctx), id, load, q)
	return nil, q
}

// fresh reports whether an entry has not expired. A clock that was set back expires it.
func fresh(now, at time.Time, lasts time.Duration) bool {
	age := now.Sub(at)
	return age >= 0 && age < lasts
}

// read reads a key or a session and completes the pending read.
func (r *Ring) read(ctx context.Context, id string, load load, q *pendingRead) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	f, err := load(ctx)
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
	e := &entry{found: f, at: at, lasts: cacheTTL}
	if !f.known {
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
