package stream

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"reflect"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/events"
	"github.com/holdfast-go/holdfast/internal/snapshots"
	"github.com/holdfast-go/holdfast/internal/store"
)

// kind returns the key under which the aggregate's snapshots are stored.
func (a *Aggregate[S]) kind() string { return a.codec + "/" + a.prefix }

// saveSnapshot stores a snapshot if an append has crossed a multiple of the interval. It loads the state
// from the database, because the stored times of the events are part of it. Errors are ignored:
// the append is committed, and a later one stores a snapshot.
func (a *Aggregate[S]) saveSnapshot(ctx context.Context, d holdfast.Doer, id string, was, last Version) {
	every := Version(a.every)
	if every == 0 || (was+1)/every == (last+1)/every {
		return
	}
	s, err := a.load(ctx, d, id)
	if err != nil || s.version == None {
		return
	}
	data, err := json.Marshal(s.state)
	if err != nil || len(data) > events.MaxBytes {
		return
	}
	_, _ = snapshots.Put(ctx, store.DoerOf(d), snapshots.Snapshot{Stream: s.stream, Kind: a.kind(), Version: int64(s.version), Data: data})
}

// beginAtSnapshot returns the state of the snapshot and the events from its version on. The event at
// that version is read again to detect a snapshot beyond the end of its stream: then no events
// are returned, and also if there is no usable snapshot. If the stream was restarted since, the
// first event is the newer state.
func (a *Aggregate[S]) beginAtSnapshot(ctx context.Context, d holdfast.Doer, none folded[S]) (folded[S], []Event, error) {
	found, err := snapshots.Get(ctx, store.DoerOf(d), none.stream, a.kind())
	if err != nil || found.Version == events.None {
		return none, nil, err
	}
	s := folded[S]{stream: none.stream, version: Version(found.Version)}
	if !decodeSnapshot(found.Data, &s.state) {
		return none, nil, nil
	}
	page, err := a.read(ctx, d, s.stream, s.version)
	if err != nil || len(page) == 0 {
		return none, nil, err
	}
	return s, page, nil
}

// decodeSnapshot decodes the state of a snapshot. It returns false for a state with fields that S does not have: it had
// another form when it was stored, under the same codec by mistake.
func decodeSnapshot(data []byte, state any) bool {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(state) == nil
}

// checkJSONRoundTrip rejects a type that JSON does not preserve completely: a snapshot of it would be
// restored as another state, without any error.
func checkJSONRoundTrip[S any]() error {
	return carried(reflect.TypeFor[S](), make(map[reflect.Type]bool))
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// carried returns an error if JSON does not preserve all values of a type.
func carried(t reflect.Type, seen map[reflect.Type]bool) error {
	if seen[t] || marshalsItself(t) {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return carried(t.Elem(), seen)
	case reflect.Struct:
		return carriedFields(t, seen)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fault.New(fault.Validation, "a snapshot cannot restore %s, because JSON does not record its concrete type: use a concrete type, or give the enclosing type MarshalJSON and UnmarshalJSON", t)
		}
	case reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return fault.New(fault.Validation, "a snapshot cannot store a value of type %s, because JSON cannot represent it: remove the field, or give the enclosing type MarshalJSON and UnmarshalJSON", t)
	}
	return nil
}

func marshalsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonMarshaler) || p.Implements(textMarshaler)
}

func carriedFields(t reflect.Type, seen map[reflect.Type]bool) error {
	for f := range t.Fields() {
		embedded := f.Anonymous && f.Type.Kind() == reflect.Struct
		if f.Tag.Get("json") == "-" || !f.IsExported() && !embedded {
			return fault.New(fault.Validation, "a snapshot would lose field %s of %s, which JSON omits: export it, or give the type MarshalJSON and UnmarshalJSON", f.Name, t)
		}
		if err := carried(f.Type, seen); err != nil {
			return err
		}
	}
	return nil
}
