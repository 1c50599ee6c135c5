package store

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// VerbOf declares a verb whose arguments are the fields of A with a tag arg:"name", including those of nested
// structs. Strings and integers are bound as they are, a duration in milliseconds, a bool as 0 or 1, other
// slices and maps as JSON; fields of those types must be exported. A nil *int64 is NULL, and so is the zero
// value of a field tagged arg:"name,null". Use [NewVerb] to bind anything else.
func VerbOf[A, R any](d Decl, keys func(A) []string, scan func(*R, Row) error) *Verb[A, R] {
	return newVerb(d, keys, binderOf(reflect.TypeFor[A]()), scan)
}

// VerbOfRows is like [VerbOf] for a verb with child rows, whose arguments are the fields of T.
func VerbOfRows[A, T, R any](d Decl, keys func(A) []string, rows func(*A) []T, scan func(*R, Row) error) *Verb[A, R] {
	own, child := binderOf(reflect.TypeFor[A]()), binderOf(reflect.TypeFor[T]())
	return newVerb(d, keys, func(a any, args *Args) {
		own(a, args)
		Rows(args, rows(a.(*A)), func(_ int, row T, args *Args) { child(&row, args) })
	}, scan)
}

// binderOf returns the function that binds the fields of A.
func binderOf(t reflect.Type) func(any, *Args) {
	fields := fieldsOf(t, nil)
	return func(a any, args *Args) {
		v := reflect.ValueOf(a).Elem()
		for i := range fields {
			fields[i].bind(v, args)
		}
	}
}

// field is a struct field that is bound as an argument.
type field struct {
	index []int
	name  string
	null  bool // the zero value is bound as NULL
}

// fieldsOf returns the bound fields of a struct. index is the path to the struct.
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
			panic(fmt.Sprintf("store: field %s of %s cannot be an argument (%s)", f.Name, t, tag))
		default:
			all = append(all, field{at, name, option == "null"})
		}
	}
	return all
}

// bindable reports whether a field of type t can be an argument.
func bindable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Slice, reflect.Map:
		return true
	}
	return t == reflect.TypeFor[*int64]()
}

var durationType = reflect.TypeFor[time.Duration]()

// bind binds the field of a struct value.
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

// JSON encodes a list or map of plain values for a statement. A nil list is encoded as empty.
func JSON(v any) string {
	text, _ := json.Marshal(v)
	if string(text) == "null" {
		return "[]"
	}
	return string(text)
}

// TextArg returns a binder for a single string argument.
func TextArg(name string) func(string, *Args) {
	return func(v string, a *Args) { a.Text(name, v) }
}

// IntArg returns a binder for a single number, such as a limit.
func IntArg(name string) func(int, *Args) {
	return func(v int, a *Args) { a.Int(name, int64(v)) }
}

// Bit returns 1 for true and 0 for false: SQLite has no boolean type.
func Bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
