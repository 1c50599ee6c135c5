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
	// remembered is how long what was read of a key is gone by.
	remembered = 2 * time.Second
	// asking is how long the database is waited for. An answer may be as old as
	// the question, so it must not take longer than a revocation may.
	asking = 4 * time.Second
	// mostKnown and mostUnknown are how many keys are remembered, and how many
	// ids that are none. They are apart, so that those who guess push nobody out.
	mostKnown   = 16384
	mostUnknown = 2048
)

// refused is the answer to every text that is not a good key. It is one and the
// same, so that nobody learns which part of a guess was right.
var refused = fault.New(fault.Auth, "the API key is missing or not valid")

// Ring tells which key a caller presents. Safe for concurrent use.
//
// What it reads of a key it goes by for two seconds at most, counted from when it
// asked, and no longer than the key was then good for by the database's time: so a
// key that is revoked or expired is refused on every node within five seconds, also
// where the database is slow to answer. Of those who ask for a key at once, one
// reads. An id that is unknown takes the same way, against a hash that no secret
// has.
type Ring struct {
	d     store.Doer
	now   func() time.Time // the node's: it tells how old an answer is, and no more
	dummy string

	mu      sync.Mutex
	known   map[string]*entry
	unknown map[string]*entry
	asked   map[string]*question
}

// entry is what was read of an id. It is never changed.
type entry struct {
	key   Key // without an id: there is none
	hash  string
	good  bool
	at    time.Time // when it was asked for
	lasts time.Duration
}

// question is a read under way. Its answer is set before done is closed.
type question struct {
	at    time.Time
	done  chan struct{}
	entry *entry
	err   error
}

type found struct {
	result
	hash string
	good bool
	left int64 // in ms; -1: without end
}

// findVerb looks a key up before its workspace is known.
var findVerb = store.NewVerb(store.Decl{Name: "keys.find", Lane: store.Read}, nil, store.TextArg("id"),
	func(f *found, r store.Row) error {
		return scanWith(&f.result, r, &f.key.Workspace, &f.hash, &f.good, &f.left, &f.key.origin)
	})

// anyVerb asks whether there is a key at all that is good.
var anyVerb = store.VerbOf[struct{}](store.Decl{Name: "keys.any", Lane: store.Read}, nil, store.ScanValue[bool])

// Any says whether somebody has a key that is good now, in whatever workspace.
func Any(ctx context.Context, d store.Doer) (bool, error) {
	return anyVerb.DoAt(ctx, d, store.Partition{}, struct{}{})
}

// NewRing returns a ring that reads through a doer, and remembers nothing yet.
func NewRing(d store.Doer) *Ring {
	return &Ring{d: d, now: clock.Now, dummy: hash(newSecret()), known: make(map[string]*entry),
		unknown: make(map[string]*entry), asked: make(map[string]*question)}
}

// Verify returns the key that a text is. Where it is none, or not good any more,
// the error is a [fault.Auth], the same each time; where the database does not
// tell, it is another.
func (r *Ring) Verify(ctx context.Context, presented string) (Key, error) {
	id, secret, ok := split(presented)
	if !ok {
		return Key{}, refused
	}
	e, err := r.look(ctx, id)
	if err != nil {
		return Key{}, err
	}
	same := subtle.ConstantTimeCompare([]byte(hash(secret)), []byte(e.hash)) == 1
	if !same || !e.good {
		return Key{}, refused
	}
	return e.key.clone(), nil
}

// look returns what is remembered of an id, or asks.
func (r *Ring) look(ctx context.Context, id string) (*entry, error) {
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

// find returns what is remembered, or the question whose answer is to be awaited.
// It has a goroutine of its own, because one caller may leave and others stay.
func (r *Ring) find(ctx context.Context, id string) (*entry, *question) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for _, m := range []map[string]*entry{r.known, r.unknown} {
		if e := m[id]; e != nil && young(now, e.at, e.lasts) {
			return e, nil
		}
	}
	if q := r.asked[id]; q != nil && young(now, q.at, remembered) {
		return nil, q
	}
	q := &question{at: now, done: make(chan struct{})}
	r.asked[id] = q
	go r.ask(context.WithoutCancel(ctx), id, q)
	return nil, q
}

// young says whether something is not older than it may be. A clock that was put
// back makes it old.
func young(now, at time.Time, lasts time.Duration) bool {
	age := now.Sub(at)
	return age >= 0 && age < lasts
}

// ask reads a key and answers the question.
func (r *Ring) ask(ctx context.Context, id string, q *question) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	f, err := findVerb.DoAt(ctx, r.d, store.Partition{}, id)
	if ctx.Err() != nil { // an answer too, that comes so late
		err = fault.New(fault.Unavailable, "the database did not tell of the API key within %s: try again", asking).Repeatable().Wrap(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(q.done)
	if r.asked[id] == q {
		delete(r.asked, id)
	}
	if q.err = err; err == nil {
		q.entry = r.keep(id, q.at, f)
	}
}

// keep remembers what was read. REQUIRES: mu
func (r *Ring) keep(id string, at time.Time, f found) *entry {
	e := &entry{key: f.key, hash: f.hash, good: f.good, at: at, lasts: remembered}
	if f.key.ID == "" {
		e.hash, e.good = r.dummy, false
		put(r.unknown, mostUnknown, id, e)
		return e
	}
	if f.left >= 0 && f.good {
		e.lasts = min(remembered, time.Duration(f.left)*time.Millisecond)
	}
	put(r.known, mostKnown, id, e)
	return e
}

// put adds an entry. What is full is emptied: everything in it would be old in two
// seconds anyway.
func put(m map[string]*entry, most int, id string, e *entry) {
	if m[id] == nil && len(m) >= most {
		clear(m)
	}
	m[id] = e
}
