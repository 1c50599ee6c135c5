package scopestore_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/scopestore"
	"github.com/holdfast-go/holdfast/internal/strictjson"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// TestPlainNumbers verifies that numbers become canonical, and that nothing else
// changes.
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
		if got, err := scopestore.State([]byte(doc)); string(got) != want || err != nil {
			t.Errorf("canonical form of %s is %s, error %v, want %s", doc, got, err, want)
		}
	}
}

// TestPlainNumbersKeepTheirValue verifies for random numbers that the value is the same
// and that no exponent is left.
func TestPlainNumbersKeepTheirValue(t *testing.T) {
	number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,8})(\.[0-9]{1,6})?([eE][+-]?[0-9]{1,2})?`)
	testlevel.Rapid()
	rapid.Check(t, func(t *rapid.T) {
		doc := []byte(`{"n":` + number.Draw(t, "number") + `}`)
		got, err := scopestore.State(doc)
		if err != nil || !strictjson.Equal(doc, got) || bytes.ContainsAny(got, "eE") {
			t.Fatalf("canonical form of %s is %s, error %v", doc, got, err)
		}
	})
}

// TestNumbersThatAreTooLongAreRefused verifies that a number whose stored form is too
// long is refused by every entry point, with its path, and that an accepted state is
// accepted again.
func TestNumbersThatAreTooLongAreRefused(t *testing.T) {
	ways := map[string]func(string) error{
		"/a":   func(n string) error { _, err := scopestore.State([]byte(`{"a":` + n + `}`)); return err },
		"/b/0": func(n string) error { _, err := scopestore.Patch([]byte(`{"b":[` + n + `]}`)); return err },
		"/f/0": func(n string) error { _, err := scopestore.Push("f", []byte(n)); return err },
		"/f/k": func(n string) error { _, err := scopestore.Set("f", "k", []byte(n)); return err },
	}
	for number, long := range map[string]bool{
		"1e-400": true, "1E-399": true, "-1e-398": true, "1.5e-398": true, "0.01e-397": true, "12345e-399": true,
		"1e-398": false, "-1e-397": false, "1000e-400": false, "0e-400": false, "1e308": false, "0.5": false,
	} {
		for pointer, way := range ways {
			f, refused := errors.AsType[*fault.Error](way(number))
			if refused != long {
				t.Errorf("%s at %s: got error %v", number, pointer, f)
			} else if long && (f.Code != fault.Validation || f.Fields["pointer"] != pointer || !strings.Contains(f.Message, "without its exponent")) {
				t.Errorf("%s at %s: got error %v, fields %v", number, pointer, f, f.Fields)
			}
		}
	}
}

// TestWhatIsAStateIsOneAgain verifies for random numbers that the stored form of a state
// is a valid state.
func TestWhatIsAStateIsOneAgain(t *testing.T) {
	testlevel.Rapid()
	rapid.Check(t, func(t *rapid.T) {
		mantissa := rapid.StringMatching(`-?(0|[1-9][0-9]{0,5})(\.[0-9]{1,6})?`).Draw(t, "mantissa")
		doc := fmt.Sprintf(`{"n":%se%d}`, mantissa, rapid.OneOf(rapid.IntRange(-400, -380), rapid.IntRange(-400, 310)).Draw(t, "exponent"))
		stored, err := scopestore.State([]byte(doc))
		if err != nil {
			return
		}
		if again, err := scopestore.State(stored); err != nil || !bytes.Equal(again, stored) {
			t.Fatalf("%s is stored as %s, and again as %s, error %v", doc, stored, again, err)
		}
	})
}
