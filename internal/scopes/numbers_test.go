package scopes

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/strict"
)

// TestPlainNumbers verifies that numbers get their one form, and that nothing else is
// touched.
func TestPlainNumbers(t *testing.T) {
	for doc, want := range map[string]string{
		`{"a":1e2}`:               `{"a":100}`,
		`{"a":-1.50E+1}`:          `{"a":-15}`,
		`{"a":12e-1,"b":1.25e-3}`: `{"a":1.2,"b":0.00125}`,
		`{"a":0e5,"b":-0.0e-2}`:   `{"a":0,"b":0}`,
		`{"a":1.0,"b":1.10}`:      `{"a":1,"b":1.1}`,
		`{"e":"1e2","E\"1e3":[]}`: `{"E\"1e3":[],"e":"1e2"}`,
		`{"b":true, "a":false}`:   `{"a":false,"b":true}`,
		`{"a":[1e0,{"b":2e1}]}`:   `{"a":[1,{"b":20}]}`,
		`{"a":9007199254740993}`:  `{"a":9007199254740993}`,
		`{"a":"<&>"}`:             `{"a":"<&>"}`,
	} {
		if got, err := canonical([]byte(doc)); string(got) != want || err != nil {
			t.Errorf("%s became %s, %v, want %s", doc, got, err, want)
		}
	}
}

// TestPlainNumbersKeepTheirValue verifies for random numbers that the value is
// the same and that no exponent is left.
func TestPlainNumbersKeepTheirValue(t *testing.T) {
	number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,8})(\.[0-9]{1,6})?([eE][+-]?[0-9]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		doc := []byte(`{"n":` + number.Draw(t, "number") + `}`)
		got, err := canonical(doc)
		if err != nil || !strict.Equal(doc, got) || bytes.ContainsAny(got, "eE") {
			t.Fatalf("%s became %s, %v", doc, got, err)
		}
	})
}
