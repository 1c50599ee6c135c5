package scope

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Put replaces the whole state, also fields that T does not have, or creates the scope. Without a condition, such as
// [ExpectVersion], the last of several concurrent calls wins: use Atomic if the new state depends on the old one. If other writers are faster
// in each of [MaxAttempts] attempts, the error is [holdfast.ErrConcurrency].
func (s Scope[T]) Put(ctx context.Context, state T) (Snapshot[T], error) {
	doc, err := marshal(&state)
	if err == nil {
		err = strictjson.State(doc)
	}
	if err != nil {
		return Snapshot[T]{}, err
	}
	return typed[T](s.handle.atomic(ctx, func(_ context.Context, old []byte) ([]byte, error) {
		if old != nil && strictjson.Equal(old, doc) {
			return nil, nil
		}
		return doc, nil
	}))
}

// GetAt returns the scope as it was at a version. It repeats the changes that the history of the scope has recorded, so it is
// meant for people and audits, not for hot paths. If the scope did not exist at the version, or if the changes that led to it
// are no longer retained ([holdfast.Config].HistoryRetention) or were written by an earlier build, the error is [holdfast.ErrNotFound].
// Files and memory have no history: the error is [holdfast.ErrValidation].
func (s Scope[T]) GetAt(ctx context.Context, version int64) (Snapshot[T], error) {
	h := s.handle
	if err := checkNames(h.kind, h.id); err != nil {
		return Snapshot[T]{}, err
	}
	in, ok := h.backend.(interface {
		getAt(ctx context.Context, kind, id string, version int64) (scopestore.Scope, error)
	})
	if !ok {
		return Snapshot[T]{}, fault.New(fault.Validation, "only a database records the history of scopes: open the scope with In to read an earlier version")
	}
	if err := h.backend.ready(ctx); err != nil {
		return Snapshot[T]{}, err
	}
	at, err := in.getAt(ctx, h.kind, h.id, version)
	return typed[T](found{Scope: at, exists: err == nil}, err)
}

func (v verbs) getAt(ctx context.Context, kind, id string, version int64) (scopestore.Scope, error) {
	return scopestore.GetAt(ctx, v.doer, kind, id, version)
}

// Info describes a scope without its state.
type Info struct {
	Kind, ID             string
	Version              int64
	CreatedAt, UpdatedAt time.Time
	ExpiresAt            time.Time // the zero time if it does not expire
}

// Filter selects scopes. The zero Filter selects all of a kind.
type Filter struct {
	// Prefix is the beginning of the ids.
	Prefix string
}

// List iterates over the scopes of a kind in a database, in the order of their ids.
func List(ctx context.Context, d holdfast.Doer, kind string, f Filter) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for e, err := range store.Seq(func(last scopestore.Entry, limit int) ([]scopestore.Entry, error) {
			return scopestore.List(ctx, store.DoerOf(d), scopestore.ListArgs{Kind: kind, Prefix: f.Prefix, After: last.ID, Limit: limit})
		}, func(e scopestore.Entry) scopestore.Entry { return e }) {
			if err == nil && !e.Exists {
				continue
			}
			if !yield(infoOf(kind, e), err) {
				return
			}
		}
	}
}

func infoOf(kind string, e scopestore.Entry) Info {
	return Info{Kind: kind, ID: e.ID, Version: e.Version, CreatedAt: e.CreatedAt.UTC(), UpdatedAt: e.UpdatedAt.UTC(), ExpiresAt: store.OrZero(e.ExpiresAt).UTC()}
}

// ListKinds iterates over the kinds of which there are scopes in a database, or were until a day ago.
func ListKinds(ctx context.Context, d holdfast.Doer) iter.Seq2[string, error] {
	return store.Seq(func(last string, limit int) ([]string, error) {
		return scopestore.ListKinds(ctx, store.DoerOf(d), last, limit)
	}, func(kind string) string { return kind })
}
