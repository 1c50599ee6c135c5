package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/holdfast-go/holdfast/fault"
)

// Decode checks the document as [Check] does and reads it into what the pointer
// points to, as encoding/json does with three differences: a member that has no
// field is refused, so is one whose name has the wrong case, and a number for
// an interface becomes a [json.Number]. A map takes any name; an interface and
// a [json.RawMessage] take anything; null leaves a field as it is.
//
// A type that reads itself says why it refuses a value by returning a
// [*fault.Error]; any other error of its is for the log. What the pointer points
// to is in no state to use after an error.
func Decode(doc []byte, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fault.New(fault.Internal, "decode into %T: it has to be a pointer", into)
	}
	sh := shapeOf(v.Type().Elem())
	if err := scan(doc, sh); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return misfit(doc, sh, err)
	}
	return nil
}

// misfit makes a refusal of an error of encoding/json, which does not say where
// in an array it was, and of a type that reads itself says nothing at all. So
// the document is read once more and each value tried by itself.
func misfit(doc []byte, sh *shape, cause error) error {
	s := scanner{doc: doc, probing: true}
	if err := s.document(sh); err != nil {
		return err
	}
	return fault.New(fault.Validation, "the document does not fit what is wanted here").Wrap(cause)
}

// probe tries the value from start up to the position on its type, unless its
// parts have been tried already.
func (s *scanner) probe(sh *shape, start int) error {
	raw := s.doc[start:s.pos]
	if sh == nil || sh.opens(raw[0]) {
		return nil
	}
	err := sh.try(raw)
	if err == nil {
		return nil
	}
	if inner, ok := errors.AsType[*fault.Error](err); ok {
		return s.nested(inner)
	}
	if sh.form == opaque {
		return s.wrap(start, err, "a value that is not accepted")
	}
	return s.wrap(start, err, "%s where %s is wanted", kindOf(raw[0]), sh.wants())
}

// try reads a value into a fresh variable of the type.
func (sh *shape) try(raw []byte) error {
	if sh.quoted && raw[0] != 'n' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		raw = []byte(text)
	}
	return json.Unmarshal(raw, reflect.New(sh.typ).Interface())
}

// nested passes on what a type that reads itself has to say, and adds where.
func (s *scanner) nested(inner *fault.Error) error {
	pointer := s.pointer()
	below, _ := inner.Fields["pointer"].(string)
	told := *inner
	told.Message = fmt.Sprintf("%s, in the value at %s", inner.Message, place(pointer))
	return told.With("pointer", pointer+below)
}

func (s *scanner) wrap(at int, cause error, format string, args ...any) error {
	f, _ := errors.AsType[*fault.Error](s.fail(at, format, args...))
	return f.Wrap(cause)
}

// wants names what the type takes.
func (sh *shape) wants() string {
	if sh.quoted {
		unquoted := *sh
		unquoted.quoted = false
		return unquoted.wants() + " in a string"
	}
	if sh.typ == reflect.TypeFor[json.Number]() {
		return "a number"
	}
	switch k := sh.typ.Kind(); {
	case sh.form == record || sh.form == table:
		return "an object"
	case sh.form == list && sh.typ.Elem().Kind() == reflect.Uint8:
		return "a string of base64"
	case sh.form == list:
		return "an array"
	case k == reflect.String:
		return "a string"
	case k == reflect.Bool:
		return "a boolean"
	case reflect.Int <= k && k <= reflect.Int64:
		return fmt.Sprintf("an integer of %d bits", sh.typ.Bits())
	case reflect.Uint <= k && k <= reflect.Uintptr:
		return fmt.Sprintf("an unsigned integer of %d bits", sh.typ.Bits())
	}
	return "a number"
}
