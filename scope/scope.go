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

// Snapshot is the state of a scope at a point in time. It is a copy: changing it does not change the
// store.
//
// If the stored state cannot be decoded as a T, the call returns an error with the code [fault.Internal], and the
// snapshot has all fields except State. An edit such as Inc is made in the store, before its result is decoded: if the
// call has changed the scope, Changed is true, and the error has the fields "changed" and "version". Do not repeat such
// a call.
type Snapshot[T any] struct {
	Kind, ID string
	// Version grows with every change. If the scope does not exist, it is -1. Only the snapshot that Delete returns has the
	// version of the deletion, if there was a scope to delete. No version is reused, even if the scope is created again.
	Version int64
	// Exists reports whether the scope exists. If not, State is an empty object decoded as a T.
	Exists bool
	// Changed reports whether the call that returned the snapshot changed the scope.
	Changed bool
	// State is the state at Version, with one exception: if the database's response to an edit was
	// lost, and others changed the scope before it could be read again, State is a later state.
	// Even then, the field changed by Inc has the result of the caller's own change.
	State T
}

// Scope is a handle on one scope. It holds no resources, so creating it costs nothing. It is safe for concurrent use.
type Scope[T any] struct{ handle *handle }

// In returns a handle on a scope in the database of an engine or, given a transaction, inside
// that transaction: its changes are then committed with the transaction, or not at all.
func In[T any](d holdfast.Doer, kind, id string, o ...Option) Scope[T] {
	// An engine and its transactions share the queues and kinds of scopes. The engine's Directory holds them.
	switch d := store.DoerOf(d).(type) {
	case *engine.Engine:
		return handled[T](&engineBackend{verbs{d, shared(d.Runner().Directory)}, d}, kind, id, o)
	case *store.Tx:
		return handled[T](&txBackend{verbs{d, shared(d.Directory())}}, kind, id, o)
	}
	return handled[T](nil, kind, id, o) // there is no other Doer
}

// Of returns a handle on a scope in a [Store].
func Of[T any](s *Store, kind, id string, o ...Option) Scope[T] {
	return handled[T](s.backend, kind, id, o)
}

// Memory returns a handle on a new scope in memory that no other handle shares.
func Memory[T any](o ...Option) Scope[T] { return handled[T](newMemory(), "memory", "-", o) }

func handled[T any](in backend, kind, id string, o []Option) Scope[T] {
	h := &handle{backend: in, kind: kind, id: id}
	for _, option := range o {
		option.set(&h.given)
	}
	return Scope[T]{h}
}

// Get returns the current scope. A scope that does not exist is not an error: see
// [Snapshot].Exists.
func (s Scope[T]) Get(ctx context.Context) (Snapshot[T], error) {
	return typed[T](s.handle.get(ctx))
}

// Atomic replaces the state with the result of f. f gets its own copy of the state, which it may modify and return. If
// f returns an error, Atomic returns that error and writes nothing. In a store with other writers, f may run again on
// a newer state that another writer has written, and Atomic returns the snapshot of the attempt that was committed. If
// other writers are faster in every attempt, the error is [holdfast.ErrConcurrency]. Fields that T does not have stay
// unchanged, and so does everything that f did not touch.
//
// A state is a JSON object of at most 1 MiB: a larger one is [holdfast.ErrPayloadTooLarge].
//
// f may be slow and call other systems, but must not change the same scope: with the context that f gets, such a change
// returns [holdfast.ErrReentrant]. That context ends when the budget is spent. A panic in f continues in the caller, as
// a [PanicError] (inside a transaction unchanged), and does not affect the next caller in the queue.
func (s Scope[T]) Atomic(ctx context.Context, f func(context.Context, T) (T, error)) (Snapshot[T], error) {
	if f == nil {
		return Snapshot[T]{}, fault.New(fault.Validation, "the function of Atomic is nil: pass one")
	}
	return typed[T](s.handle.atomic(ctx, func(ctx context.Context, state []byte) ([]byte, error) { return mutate(ctx, state, f) }))
}

// Patch merges a document into the state (RFC 7396). merge must encode to a JSON object, whose
// members replace the members of the state, recursively for objects; null removes a member. Readers see
// all of the patch, or nothing.
func (s Scope[T]) Patch(ctx context.Context, merge any) (Snapshot[T], error) {
	return s.editWith(ctx, merge, scopestore.Patch)
}

// Inc adds to the integer in a field. A missing field counts as 0. If the field is not a 64-bit
// integer, or the sum would not be one, Inc returns [holdfast.ErrValidation].
func (s Scope[T]) Inc(ctx context.Context, field string, by int64) (Snapshot[T], error) {
	op, err := scopestore.Inc(field, by)
	return s.edit(ctx, op, err)
}

// Push appends an item to the list in a field. A missing field counts as an empty list.
func (s Scope[T]) Push(ctx context.Context, field string, item any) (Snapshot[T], error) {
	return s.editWith(ctx, item, func(doc []byte) (scopestore.Op, error) { return scopestore.Push(field, doc) })
}

// SetRecord sets a record in the object in a field, under a key. A missing field counts as an
// empty object.
func (s Scope[T]) SetRecord(ctx context.Context, field, key string, record any) (Snapshot[T], error) {
	return s.editWith(ctx, record, func(doc []byte) (scopestore.Op, error) { return scopestore.Set(field, key, doc) })
}

// DeleteRecord removes a record from the object in a field. If the record does not exist, nothing changes.
func (s Scope[T]) DeleteRecord(ctx context.Context, field, key string) (Snapshot[T], error) {
	op, err := scopestore.Unset(field, key)
	return s.edit(ctx, op, err)
}

// Delete deletes the scope. If the scope does not exist, nothing changes.
func (s Scope[T]) Delete(ctx context.Context) (Snapshot[T], error) {
	return typed[T](s.handle.remove(ctx))
}

// edit makes an edit, unless invalid is an error.
func (s Scope[T]) edit(ctx context.Context, op scopestore.Op, invalid error) (Snapshot[T], error) {
	return typed[T](s.handle.edit(ctx, op, s.fits(op, invalid)))
}

// editWith makes an edit with a value encoded as JSON.
func (s Scope[T]) editWith(ctx context.Context, v any, of func(doc []byte) (scopestore.Op, error)) (Snapshot[T], error) {
	doc, err := marshal(v)
	if err != nil {
		return Snapshot[T]{}, err
	}
	op, err := of(doc)
	return s.edit(ctx, op, err)
}

// fits rejects an edit whose result T could not decode, before it is made.
func (s Scope[T]) fits(op scopestore.Op, invalid error) error {
	if invalid != nil {
		return invalid
	}
	alone := op.Alone() // the state after the edit if the state before was empty
	if alone == nil || ruled(reflect.TypeFor[T]()) {
		return nil
	}
	var t T
	if err := json.Unmarshal(alone, &t); err != nil {
		return fault.New(fault.Validation, "the value does not match %T: %v", t, err).Wrap(err)
	}
	return nil
}

// ruled reports whether a type decodes itself: it may check all its fields together, so a single
// field cannot be checked.
func ruled(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// found is a snapshot without its type parameter.
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

// misfit returns the error for a stored state that is not a T. It says whether the call changed
// the scope all the same.
func misfit[T any](s Snapshot[T], err error) error {
	f := fault.New(fault.Internal, "the state of %s scope %q is not a valid %T: %v", s.Kind, s.ID, s.State, err).Wrap(err)
	if s.Changed {
		f = fault.New(fault.Internal, "%s scope %q was changed to version %d, but its state is not a valid %T: %v", s.Kind, s.ID, s.Version, s.State, err).
			With("changed", true).With("version", s.Version).Wrap(err)
	}
	return f
}

func marshal(v any) ([]byte, error) {
	doc, err := scopestore.Write(v)
	if err != nil {
		return nil, fault.New(fault.Validation, "the value cannot be encoded as JSON: %v", err).Wrap(err)
	}
	return doc, nil
}
