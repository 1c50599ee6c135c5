package strictjson_test

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// TestDifferences verifies that a difference has the expected operations and, applied, gives the other document.
func TestDifferences(t *testing.T) {
	for _, x := range []struct{ from, to, want string }{
		{`{"a":1}`, `{"a":1.0}`, `[]`},
		{`{"a":1}`, `{"a":null}`, `[{"op":"replace","path":"/a","value":null}]`},
		{`{"a":null}`, `{}`, `[{"op":"remove","path":"/a"}]`},
		{`{}`, `{"a":null}`, `[{"op":"add","path":"/a","value":null}]`},
		{`{"a":{"b":1,"c":2},"d":[1,2]}`, `{"a":{"b":1,"c":3},"d":[1]}`, `[{"op":"replace","path":"/a/c","value":3},{"op":"replace","path":"/d","value":[1]}]`},
		{`{"a":{"b":1}}`, `{"a":[]}`, `[{"op":"replace","path":"/a","value":[]}]`},
		{`{"a/b":{"~":1}}`, `{"a/b":{"~":2},"":0}`, `[{"op":"add","path":"/","value":0},{"op":"replace","path":"/a~1b/~0","value":2}]`},
		{`{"n":12345678901234567890.5}`, `{"n":12345678901234567890.25}`, `[{"op":"replace","path":"/n","value":12345678901234567890.25}]`},
		{`1`, `{"a":1}`, `[{"op":"replace","path":"","value":{"a":1}}]`},
	} {
		got, err := strictjson.Difference([]byte(x.from), []byte(x.to))
		if err != nil || string(got) != x.want {
			t.Errorf("from %s to %s: got %s, %v, want %s", x.from, x.to, got, err, x.want)
		}
		if back, err := strictjson.Patched([]byte(x.from), got); err != nil || !strictjson.Equal(back, []byte(x.to)) {
			t.Errorf("%s patched by %s is %s, %v, want %s", x.from, got, back, err, x.to)
		}
	}
	for _, patch := range []string{`{}`, `[{"op":"replace","path":"/a/b","value":1}]`, `x`} {
		if got, err := strictjson.Patched([]byte(`{"a":1}`), []byte(patch)); err == nil {
			t.Errorf("patch %s was applied: %s", patch, got)
		}
	}
}
