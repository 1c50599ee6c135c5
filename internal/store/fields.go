package store

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// VerbOf declares a verb whose arguments are the fields of A that have a tag arg:"name", those of structs in A
// included. Texts and numbers are bound as they are, a duration in milliseconds, a bool as 0 or 1, other slices and maps as JSON; their
// fields are exported. A nil *int64 is NULL, and so is the zero value of a field whose tag is arg:"name,null". [NewVerb] is for a verb that binds
// something else.
func VerbOf[A, R any](d Decl, keys func(A) []string, scan func(*R, Row) error) *Verb[A, R] {
	fields := fieldsOf(reflect.TypeFor[A](), nil)
	return newVerb(d, keys, func(a *A, args *Args) {
		v := reflect.ValueOf(a).Elem()
		for i := range fields {
			fields[i].bind(v, args)
		}
	}, scan)
}

// field is one that is bound.
type field struct {
	index []int
	name  string
	null  bool // where it is empty
}

// fieldsOf returns the fields of a struct that are bound; index leads to it.
func fieldsOf(t reflect.Type, index []int) (all []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		tag := f.Tag.Get("arg")
		name, option, _ := strings.Cut(tag, ",")
		switch {
		case tag == "" && f.Type.Kind() == reflect.Struct:
			all = append(all, fieldsOf(f.Type, at)...)
		case tag == "":
		case !bindable(f.Type) || option != "" && option != "null":
			panic(fmt.Sprintf("the field %s of %s cannot be an argument (%s)", f.Name, t, tag))
		default:
			all = append(all, field{at, name, option == "null"})
		}
	}
	return all
}

// bindable says whether a field of a type can be an argument.
func bindable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Slice, reflect.Map:
		return true
	}
	return t == reflect.TypeFor[*int64]()
}

var durationType = reflect.TypeFor[time.Duration]()

// bind binds the field of a struct.
func (f *field) bind(v reflect.Value, a *Args) {
	v = v.FieldByIndex(f.index)
	switch kind := v.Kind(); {
	case kind == reflect.String:
		f.text(v.String(), a)
	case kind == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8:
		f.text(string(v.Bytes()), a)
	case kind == reflect.Slice && v.Len() == 0:
		a.Text(f.name, "[]")
	case kind == reflect.Slice || kind == reflect.Map:
		a.Text(f.name, JSON(v.Addr().Interface()))
	case kind == reflect.Bool:
		a.Int(f.name, Bit(v.Bool()))
	case v.IsZero() && (f.null || kind == reflect.Pointer):
		a.MaybeInt(f.name, nil)
	case v.Type() == durationType:
		a.Int(f.name, time.Duration(v.Int()).Milliseconds())
	default:
		a.Int(f.name, reflect.Indirect(v).Int())
	}
}

func (f *field) text(s string, a *Args) {
	if f.null {
		a.MaybeText(f.name, s)
	} else {
		a.Text(f.name, s)
	}
}

// JSON is a list or a map of plain values as the statements take it; it does not fail. A list that is nil is empty.
func JSON(v any) string {
	text, _ := json.Marshal(v)
	if string(text) == "null" {
		return "[]"
	}
	return string(text)
}

// TextArg binds an argument that is one text.
func TextArg(name string) func(string, *Args) {
	return func(v string, a *Args) { a.Text(name, v) }
}

// IntArg binds an argument that is one number, such as a limit.
func IntArg(name string) func(int, *Args) {
	return func(v int, a *Args) { a.Int(name, int64(v)) }
}

// Bit is 1 for true: SQLite has no other type for it.
func Bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
