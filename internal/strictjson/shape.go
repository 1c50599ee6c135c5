package strictjson

import (
	"encoding"
	"encoding/json"
	"reflect"
	"sync"
)

// shape is what a Go type takes, as far as the names of members go. A nil shape
// takes anything.
//
// It is there because encoding/json takes a name in any case: ROLE for a field
// called role. [json.Decoder.DisallowUnknownFields] does not change that, so
// the names are compared here, exactly, and before.
type shape struct {
	form form
	typ  reflect.Type
	// fields are the members of a record.
	fields map[string]*shape
	// elem is what a table or a list is of.
	elem *shape
	// quoted says that the value stands inside a string (`json:",string"`).
	quoted bool
}

// form says how the value of a type is put together.
type form int

const (
	scalar form = iota
	record      // a struct: known members only
	table       // a map: any member
	list        // a slice or an array
	opaque      // a type that reads itself
)

var (
	shapes sync.Map // of reflect.Type to *shape

	readsJSON = reflect.TypeFor[json.Unmarshaler]()
	readsText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// shapeOf returns the shape of a type. Types are few and stay, so each is
// looked at once.
func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape)
	}
	sh := shaper{}.shape(t)
	shapes.Store(t, sh)
	return sh
}

// shaper holds the types met on the way, so that a type may contain itself.
type shaper map[reflect.Type]*shape

func (m shaper) shape(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Interface {
		return nil
	}
	if sh, ok := m[t]; ok {
		return sh
	}
	sh := &shape{form: formOf(t), typ: t}
	m[t] = sh
	switch sh.form {
	case record:
		sh.fields = m.fields(t)
	case table, list:
		sh.elem = m.shape(t.Elem())
	}
	return sh
}

func formOf(t reflect.Type) form {
	if readsItself(t) {
		return opaque
	}
	switch t.Kind() {
	case reflect.Struct:
		return record
	case reflect.Map:
		return table
	case reflect.Slice, reflect.Array:
		return list
	}
	return scalar
}

func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(readsJSON) || p.Implements(readsText)
}

// member returns the shape of a member, and whether the name is known.
func (sh *shape) member(key []byte) (sub *shape, known bool) {
	switch {
	case sh == nil:
		return nil, true
	case sh.form == record:
		sub, known = sh.fields[string(key)]
		return sub, known
	case sh.form == table:
		return sh.elem, true
	}
	return nil, true
}

// item returns the shape of an array's items.
func (sh *shape) item() *shape {
	if sh != nil && sh.form == list {
		return sh.elem
	}
	return nil
}

// opens reports whether a value that begins with c is looked at part by part.
func (sh *shape) opens(c byte) bool {
	switch sh.form {
	case record, table:
		return c == '{'
	case list:
		return c == '['
	}
	return false
}
