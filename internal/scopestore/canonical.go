package scopestore

import (
	"bytes"
	"encoding/json"

	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// canonical writes a valid document in the one form that both databases keep: members by
// name, no space, and numbers as short as they can be written without an exponent. Two
// documents that mean the same are then the same text, and what one database takes for a
// whole number the other does too.
func canonical(doc []byte) ([]byte, error) {
	v, err := parse(doc)
	if err != nil {
		return nil, err
	}
	out, err := Write(v)
	if err == nil && len(out) > strictjson.MaxBytes { // numbers are longer without their exponents
		return nil, tooLarge()
	}
	return out, err
}

// State returns a document in the form that it is kept in, or says why it is no state.
func State(doc []byte) ([]byte, error) {
	if err := strictjson.State(doc); err != nil {
		return nil, err
	}
	return canonical(doc)
}

// parse reads a document, with its numbers in their one form.
func parse(doc []byte) (any, error) {
	v, err := strictjson.Read(doc)
	return plainNumbers(v), err
}

// Write writes a value as JSON, with no more bytes than it takes: json.Marshal makes six of
// each angle bracket. What was parsed comes out in its one form.
func Write(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
