package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/holdfast-go/holdfast/fault"
)

// Decode validates the document like [Check] and decodes it into the variable that into
// points to. It differs from encoding/json in three ways: it refuses a member without a
// field, it refuses a name in the wrong case, and a number for an interface becomes a
// [json.Number]. A map accepts any name, an interface and a [json.RawMessage] accept any
// value, and null leaves a field unchanged.
//
// A custom unmarshaler can return a [*fault.Error], whose message is passed on; any other
// error is only wrapped, for the log. After an error the variable may be partly set.
func Decode(doc []byte, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fault.New(fault.Internal, "cannot decode into %T: it must be a non-nil pointer", into)
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

// misfit converts an error of encoding/json, which does not name the index in an array, nor
// the place of a custom unmarshaler. So the document is scanned again, and each value is
// decoded separately to find the invalid one.
func misfit(doc []byte, sh *shape, cause error) error {
	s := scanner{doc: doc, probing: true}
	if err := s.document(sh); err != nil {
		return err
	}
	return fault.New(fault.Validation, "the document does not match the expected type").Wrap(cause)
}

// probe decodes the value between start and the position into its type, unless its parts
// were probed already.
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
	if sh.form == custom {
		return s.wrap(start, err, "invalid value")
	}
	return s.wrap(start, err, "expected %[2]s, got %[1]s", kindOf(raw[0]), sh.expected())
}

// try decodes a value into a new variable of the type.
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

// nested passes on the error of a custom unmarshaler and adds the place.
func (s *scanner) nested(inner *fault.Error) error {
	pointer := s.pointer()
	below, _ := inner.Fields["pointer"].(string)
	outer := *inner
	outer.Message = fmt.Sprintf("%s, in the value at %s", inner.Message, place(pointer))
	return outer.With("pointer", pointer+below)
}

func (s *scanner) wrap(at int, cause error, format string, args ...any) error {
	f, _ := errors.AsType[*fault.Error](s.fail(at, format, args...))
	return f.Wrap(cause)
}

// expected describes the values that the type accepts.
func (sh *shape) expected() string {
	if sh.quoted {
		unquoted := *sh
		unquoted.quoted = false
		return unquoted.expected() + " in a string"
	}
	if sh.typ == reflect.TypeFor[json.Number]() {
		return "a number"
	}
	switch k := sh.typ.Kind(); {
	case sh.form == record || sh.form == table:
		return "an object"
	case sh.form == list && sh.typ.Elem().Kind() == reflect.Uint8:
		return "a base64 string"
	case sh.form == list:
		return "an array"
	case k == reflect.String:
		return "a string"
	case k == reflect.Bool:
		return "a boolean"
	case reflect.Int <= k && k <= reflect.Int64:
		return fmt.Sprintf("a %d-bit integer", sh.typ.Bits())
	case reflect.Uint <= k && k <= reflect.Uintptr:
		return fmt.Sprintf("an unsigned %d-bit integer", sh.typ.Bits())
	}
	return "a number"
}
