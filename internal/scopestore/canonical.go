package scopestore

import (
	"bytes"
	"encoding/json"

	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// canonical returns a valid document in the form that both databases store: members
// sorted by name, no white space, and numbers in the shortest form without an
// exponent. Documents with the same meaning then have the same text, and both
// databases agree on which numbers are integers.
func canonical(doc []byte) ([]byte, error) {
	v, err := parse(doc)
	if err != nil {
		return nil, err
	}
	out, err := Write(v)
	if err == nil && len(out) > strictjson.MaxBytes { // numbers get longer without exponents
		return nil, tooLarge()
	}
	return out, err
}

// State returns a document in its stored form, or an error if it is no valid state.
func State(doc []byte) ([]byte, error) {
	if err := strictjson.State(doc); err != nil {
		return nil, err
	}
	return canonical(doc)
}

// parse reads a document and makes its numbers canonical.
func parse(doc []byte) (any, error) {
	v, err := strictjson.Read(doc)
	return canonicalNumbers(v), err
}

// Write returns a value as JSON without HTML escapes, because json.Marshal turns each
// angle bracket into six bytes. The result for a parsed document is canonical.
func Write(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
