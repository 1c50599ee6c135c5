package keys

import (
	"context"
	"maps"
	"time"

	"github.com/holdfast-go/holdfast/internal/store"
)

// useEvery is how often a ring notes the use of a key.
const useEvery = time.Minute

// use is a use of a key.
type use struct {
	at      time.Time
	waiting bool // it is not recorded yet
}

// sentUse is a use as it is sent.
type sentUse struct {
	ID  string `json:"i"`
	Age int64  `json:"t"` // in ms
}

var recordUsesVerb = store.NewVerb(store.Decl{Name: "keys.record_uses", Lane: store.Work, Idempotent: true, Aside: true}, nil,
	func(all []sentUse, args *store.Args) { args.Text("uses", store.JSON(all)) }, store.CountRows)

// used notes that the key of an entry is used, and returns it. An entry notes it once, so that most calls lock nothing.
func (r *Ring) used(e *entry) Key {
	if !e.used.Load() && e.used.CompareAndSwap(false, true) {
		r.mu.Lock()
		defer r.mu.Unlock()
		now := r.now()
		if u, ok := r.uses[e.key.ID]; !ok || !fresh(now, u.at, useEvery) {
			r.uses[e.key.ID] = use{at: now, waiting: true}
		}
	}
	return e.key.clone()
}

// RecordUses records when keys were last used, as far as this ring has seen it: at most once a minute for each. What is not
// recorded when the process ends is lost.
func (r *Ring) RecordUses(ctx context.Context) error {
	some := r.waitingUses()
	if len(some) == 0 {
		return nil
	}
	if _, err := recordUsesVerb.DoAt(ctx, r.d, store.Partition{}, some); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range some {
		u := r.uses[s.ID]
		u.waiting = false
		r.uses[s.ID] = u
	}
	return nil
}

// waitingUses returns the uses to record, and forgets recorded ones that are older than a minute.
func (r *Ring) waitingUses() (some []sentUse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	maps.DeleteFunc(r.uses, func(_ string, u use) bool { return !u.waiting && !fresh(now, u.at, useEvery) })
	for id, u := range r.uses {
		if u.waiting {
			some = append(some, sentUse{id, max(now.Sub(u.at).Milliseconds(), 0)})
		}
	}
	return some
}
