package scope

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Snapshot is a scope as it was at one moment. It is the caller's own: changing it changes
// nothing stored.
type Snapshot[T any] struct {
	Kind, ID string
	// Version grows with every change. It is -1 where there is no such scope, and after
	// Delete that of the deletion: it is never used again, also if the scope is made anew.
	Version int64
	// Exists says whether there is such a scope. Where there is none, State is what an
	// empty object is as a T.
	Exists bool
	// Changed says whether the call that returned it has changed something.
	Changed bool
	// State is that of the version. There is one exception: where the database's answer to an
	// edit was lost, and others have changed the scope before it could be asked for again, it
	// is a later one, but for the sum of Inc, which is the caller's own.
	State T
}

// Scope is a handle on one scope. It holds nothing, costs nothing to make, and is safe for
// concurrent use.
type Scope[T any] struct{ handle *handle }

// In returns a handle on a scope in the database of an engine or, given a transaction,
// inside it: then what is changed is committed with it, or not at all.
func In[T any](d holdfast.Doer, kind, id string, o ...Option) Scope[T] {
	switch d := store.DoerOf(d).(type) {
	case *engine.Engine:
		return handled[T](&engineBackend{verbs{d, shared(d.Runner().Directory)}, d}, kind, id, o)
	case *store.Tx:
		return handled[T](&txBackend{verbs{d, shared(d.Directory())}}, kind, id, o)
	}
	return handled[T](nil, kind, id, o) // nobody else is a Doer
}

// Of returns a handle on a scope in a store of its own.
func Of[T any](s *Store, kind, id string, o ...Option) Scope[T] {
	return handled[T](s.backend, kind, id, o)
}

// Memory returns a handle on a container of its own, in memory.
func Memory[T any](o ...Option) Scope[T] { return Of[T](InMemory(), "memory", "-", o...) }

func handled[T any](in backend, kind, id string, o []Option) Scope[T] {
	h := &handle{backend: in, kind: kind, id: id}
	for _, f := range o {
		f(&h.given)
	}
	return Scope[T]{h}
}

// Get returns the scope as it is now.
func (s Scope[T]) Get(ctx context.Context) (Snapshot[T], error) {
	return typed[T](s.handle.get(ctx))
}

// Atomic replaces the state by what f makes of it. f is given a state of its own, and may
// change it and return it; an error that it returns is returned, and nothing is written. In
// a store, f may be called again, on what another has written meanwhile, and the snapshot
// is that of the call that was committed. Fields that a T does not have are left as they
// are, and so is everything that f did not touch.
//
// f may take its time, and call others, but not change the same scope inside: the context
// that it is given tells. That context ends with the budget. A panic of f goes on in the
// caller, as a [PanicError], inside a transaction as it is; the next in the queue is not
// touched by it.
func (s Scope[T]) Atomic(ctx context.Context, f func(context.Context, T) (T, error)) (Snapshot[T], error) {
	return typed[T](s.handle.atomic(ctx, func(ctx context.Context, state []byte) ([]byte, error) { return mutate(ctx, state, f) }))
}

// Patch merges a document into the state (RFC 7396): what it marshals to is an object whose
// members replace those of the state, object in object; null takes a member out. All of it
// is seen, or nothing.
func (s Scope[T]) Patch(ctx context.Context, merge any) (Snapshot[T], error) {
	return s.editWith(ctx, merge, scopestore.Patch)
}

// Inc adds to the whole number in a field. A field that is missing is 0; one that is no
// whole number of 64 bits, or would not be one afterwards, is [holdfast.ErrValidation].
func (s Scope[T]) Inc(ctx context.Context, field string, by int64) (Snapshot[T], error) {
	op, err := scopestore.Inc(field, by)
	return s.edit(ctx, op, err)
}

// Push adds an item to the list in a field. A field that is missing is an empty list.
func (s Scope[T]) Push(ctx context.Context, field string, item any) (Snapshot[T], error) {
	return s.editWith(ctx, item, func(doc []byte) (scopestore.Op, error) { return scopestore.Push(field, doc) })
}

// SetRecord puts a record into the object in a field, under a key. A field that is missing
// is an empty object.
func (s Scope[T]) SetRecord(ctx context.Context, field, key string, record any) (Snapshot[T], error) {
	return s.editWith(ctx, record, func(doc []byte) (scopestore.Op, error) { return scopestore.Set(field, key, doc) })
}

// DeleteRecord takes a record out of the object in a field. One that is not there changes
// nothing.
func (s Scope[T]) DeleteRecord(ctx context.Context, field, key string) (Snapshot[T], error) {
	op, err := scopestore.Unset(field, key)
	return s.edit(ctx, op, err)
}

// Delete deletes the scope. One that is not there changes nothing.
func (s Scope[T]) Delete(ctx context.Context) (Snapshot[T], error) {
	return typed[T](s.handle.remove(ctx))
}

// edit makes an edit, unless it is invalid.
func (s Scope[T]) edit(ctx context.Context, op scopestore.Op, invalid error) (Snapshot[T], error) {
	return typed[T](s.handle.edit(ctx, op, s.fits(op, invalid)))
}

// editWith makes an edit of a value as JSON.
func (s Scope[T]) editWith(ctx context.Context, v any, of func(doc []byte) (scopestore.Op, error)) (Snapshot[T], error) {
	doc, err := marshal(v)
	if err != nil {
		return Snapshot[T]{}, err
	}
	op, err := of(doc)
	return s.edit(ctx, op, err)
}

// fits says of an edit that was to be made that a T could not read what comes of it: it is
// refused before, not after.
func (s Scope[T]) fits(op scopestore.Op, invalid error) error {
	if invalid != nil {
		return invalid
	}
	alone := op.Alone()
	if alone == nil || ruled(reflect.TypeFor[T]()) {
		return nil
	}
	var t T
	if err := json.Unmarshal(alone, &t); err != nil {
		return fault.New(fault.Validation, "a %T cannot hold this: %v", t, err).Wrap(err)
	}
	return nil
}

// ruled says of a type that it reads itself: it may look at all its fields together, and so
// says nothing of one alone.
func ruled(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// found is a snapshot before it has a type.
type found struct {
	scopestore.Scope
	exists, changed bool
}

func typed[T any](f found, err error) (Snapshot[T], error) {
	s := Snapshot[T]{Kind: f.Kind, ID: f.ID, Version: f.Version, Exists: f.exists, Changed: f.changed}
	if err != nil {
		return s, err
	}
	state := f.State
	if !f.exists {
		state = []byte("{}")
	}
	if err := json.Unmarshal(state, &s.State); err != nil {
		return s, misfit(s, err)
	}
	return s, nil
}

// misfit says that what is stored is no T, and whether the call has changed it all the same.
func misfit[T any](s Snapshot[T], err error) error {
	f := fault.New(fault.Validation, "the state of the %s scope %q is no %T: %v", s.Kind, s.ID, s.State, err).Wrap(err)
	if s.Changed {
		f = fault.New(fault.Validation, "the %s scope %q was changed, to version %d, and its state is no %T: %v", s.Kind, s.ID, s.Version, s.State, err).
			With("changed", true).With("version", s.Version).Wrap(err)
	}
	return f
}

func marshal(v any) ([]byte, error) {
	doc, err := scopestore.Write(v)
	if err != nil {
		return nil, fault.New(fault.Validation, "the value cannot be written as JSON: %v", err).Wrap(err)
	}
	return doc, nil
}
