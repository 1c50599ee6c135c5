package strictjson

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/fault"
)

// TestState verifies that State accepts what Object accepts, and also names that differ only
// by case. Equal names are refused, in small and large objects, with and without escapes.
func TestState(t *testing.T) {
	for _, doc := range []string{
		`{}`, ` {"a":1} `, `{"Ab":1,"ab":2,"AB":3}`, `{"r":{"é":1,"É":2}}`, `[{"k":1}]`[1:8], `{"l":[{"role":1,"ROLE":2}]}`, `{"a":[1e-398,0e-400,1000e-400,15E+300,-1e-397]}`,
		manyKeys(20, `"K3"`), manyKeys(8, `"K7"`), `{"k":1,"` + "\u212a" + `":2}`,
	} {
		if err := State([]byte(doc)); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	}
	for _, doc := range []string{
		``, `[]`, `null`, `1`, `"x"`, `true`, `{"a":1}{}`, `{"a":1,"a":2}`, `{"r":{"k":1,"k":2}}`, `{"role":1,"\u0072ole":2}`, `{"":1,"":2}`,
		manyKeys(20, `"k3"`), manyKeys(8, `"k7"`), `{"a":"\u0000"}`, `{"a":1e400}`, `{"a":1e-400}`, `{"a":[-1e-398]}`, `{"a":1.5e-398}`, strings.Repeat(`{"a":`, 64) + `{}` + strings.Repeat("}", 64),
	} {
		if err := State([]byte(doc)); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%s: got error %v, want a validation error", doc, err)
		}
	}
	for _, twins := range []string{`{"Ab":1,"ab":2}`, manyKeys(20, `"K3"`)} { // Object refuses them
		if err := Object([]byte(twins)); fault.CodeOf(err) != fault.Validation {
			t.Errorf("%s: got error %v, want a validation error", twins, err)
		}
	}
	long := []byte(`{"a":"` + strings.Repeat("x", MaxBytes) + `"}`)
	if err := State(long); fault.CodeOf(err) != fault.PayloadTooLarge {
		t.Errorf("document of %d bytes: got error %v, want PAYLOAD_TOO_LARGE", len(long), err)
	}
}
