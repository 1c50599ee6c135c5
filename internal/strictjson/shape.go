package strictjson

import (
	"encoding"
	"encoding/json"
	"reflect"
	"sync"
)

// shape describes the member names that a Go type accepts. A nil shape accepts anything.
//
// It is needed because encoding/json accepts a name in any case: ROLE for the field role.
// [json.Decoder.DisallowUnknownFields] does not change that, so the scanner compares the
// names exactly before decoding.
type shape struct {
	form form
	typ  reflect.Type
	// fields are the members of a record.
	fields map[string]*shape
	// elem is the shape of the elements of a table or a list.
	elem *shape
	// quoted is set if the value is inside a string (`json:",string"`).
	quoted bool
}

// form is the structure of the values of a type.
type form int

const (
	scalar form = iota
	record      // a struct: known members only
	table       // a map: any member
	list        // a slice or an array
	custom      // a type with a custom unmarshaler
)

var (
	shapes sync.Map // reflect.Type to *shape

	readsJSON = reflect.TypeFor[json.Unmarshaler]()
	readsText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// shapeOf returns the shape of a type. Shapes are cached forever, because types are few.
func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape)
	}
	sh := shaper{}.shape(t)
	shapes.Store(t, sh)
	return sh
}

// shaper has the types visited so far, so that a type may contain itself.
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
	if hasUnmarshaler(t) {
		return custom
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

func hasUnmarshaler(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(readsJSON) || p.Implements(readsText)
}

// member returns the shape of a member, and reports whether the name is known.
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

// item returns the shape of the items of an array.
func (sh *shape) item() *shape {
	if sh != nil && sh.form == list {
		return sh.elem
	}
	return nil
}

// opens reports whether the parts of a value that begins with c are read separately.
func (sh *shape) opens(c byte) bool {
	switch sh.form {
	case record, table:
		return c == '{'
	case list:
		return c == '['
	}
	return false
}
