package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

func FuzzCheck(f *testing.F) {
	for _, r := range refusals {
		f.Add([]byte(r.doc))
	}
	f.Add([]byte(smallDoc))
	f.Fuzz(func(t *testing.T, doc []byte) {
		err := Check(doc)
		if err == nil && !json.Valid(doc) {
			t.Fatalf("accepted a document that is not JSON: %q", doc)
		}
		if err == nil && !utf8.Valid(doc) {
			t.Fatalf("accepted a document that is not UTF-8: %q", doc)
		}
		if f, ok := errors.AsType[*fault.Error](err); ok && !utf8.ValidString(f.Message) {
			t.Fatalf("error message is not UTF-8: %q", f.Message)
		}
		wellFormed := json.Valid(doc) && len(doc) <= MaxBytes
		if syntaxOnly(err) && wellFormed {
			t.Fatalf("refused valid JSON as malformed: %q: %v", doc, err)
		}
	})
}

// syntaxOnly reports whether json.Valid must refuse the document too. All errors are of this
// kind, except those of the additional rules of this package.
func syntaxOnly(err error) bool {
	if err == nil {
		return false
	}
	for _, own := range []string{"duplicate", "differs only by case", "levels deep", "a number too large",
		"a number of more", "exponent above", "lone surrogate", "NUL character", "invalid UTF-8 at"} {
		if strings.Contains(err.Error(), own) {
			return false
		}
	}
	return true
}

func FuzzEqual(f *testing.F) {
	for _, pair := range equals {
		f.Add([]byte(pair.a), []byte(pair.b))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if !Equal(a, a) || !Equal(b, b) {
			t.Fatal("document is not equal to itself")
		}
		if Equal(a, b) != Equal(b, a) {
			t.Fatalf("Equal(%q, %q) depends on the order", a, b)
		}
		if Check(a) != nil || Check(b) != nil {
			return
		}
		if got, want := Equal(a, b), equalByRat(a, b); got != want {
			t.Fatalf("Equal(%q, %q) = %v", a, b, got)
		}
	})
}

// equalByRat is a slow reference for Equal: it converts each number to a fraction.
func equalByRat(a, b []byte) bool {
	x, _ := parse(a)
	y, _ := parse(b)
	return reflect.DeepEqual(rational(x), rational(y))
}

func rational(v any) any {
	switch v := v.(type) {
	case json.Number:
		r, _ := new(big.Rat).SetString(string(v))
		return r.RatString() + " as a number"
	case []any:
		for i := range v {
			v[i] = rational(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = rational(v[k])
		}
	case string:
		return strconv.Quote(v)
	}
	return v
}

var equals = []struct {
	a, b string
	same bool
}{
	{`{"a":1,"b":[2,3]}`, ` { "b":[2 ,3], "a":1.0}`, true},
	{`{"a":1}`, `{"a":1,"b":null}`, false},
	{`{"a":null}`, `{"b":null}`, false},
	{`[1,2]`, `[2,1]`, false},
	{`[1,2]`, `[1]`, false},
	{`[]`, `{}`, false},
	{`null`, `false`, false},
	{`"1"`, `1`, false},
	{`"\u00e9\/"`, `"é/"`, true},
	{`{"\u0061":1}`, `{"a":1}`, true},
	{`1e2`, `100`, true},
	{`1E+2`, `0.1e3`, true},
	{`1.0`, `1`, true},
	{`-0`, `0.0e5`, true},
	{`-1`, `1`, false},
	{`100`, `1`, false},
	{`0.001`, `1e-3`, true},
	{`10.010`, `1001e-2`, true},
	{`9007199254740993`, `9007199254740992`, false},
	{`0.1`, `0.10000000000000000555`, false},
	{`1e400`, `1` + strings.Repeat("0", 400), true},
	{`1e999999999`, `1e999999998`, false},
	{`1e-999999999`, `10e-1000000000`, true},
	{`0e99999999999999999999`, `0`, true},
	{`1e99999999999999999999`, `1e99999999999999999999`, true},
	{`1e99999999999999999999`, `1e99999999999999999998`, false},
	{`1`, `1 1`, false},
	{`{`, `{`, true},
	{`{`, `{ `, false},
}

func TestEqual(t *testing.T) {
	for _, e := range equals {
		if Equal([]byte(e.a), []byte(e.b)) != e.same || Equal([]byte(e.b), []byte(e.a)) != e.same {
			t.Errorf("Equal(%s, %s) is not %v", e.a, e.b, e.same)
		}
	}
}

// TestRandom verifies with random documents that
//   - a valid document is accepted, and so is its encoding by encoding/json, which is equal;
//   - a document with one byte changed is refused if encoding/json refuses it, and is equal
//     to the original only if it has the same value;
//   - no prefix of an object or array is accepted.
func TestRandom(t *testing.T) {
	testlevel.Rapid()
	rapid.Check(t, func(t *rapid.T) {
		doc := []byte(drawValue(t, 4))
		if err := Check(doc); err != nil {
			t.Fatalf("refused %s: %v", doc, err)
		}
		again := rewrite(t, doc)
		if err := Check(again); err != nil || !Equal(doc, again) {
			t.Fatalf("%s\nencoded again\n%s\nwas refused (%v) or is not equal", doc, again, err)
		}
		i := rapid.IntRange(0, len(doc)-1).Draw(t, "at")
		if err := Check(doc[:i]); err == nil && (doc[0] == '{' || doc[0] == '[') {
			t.Fatalf("accepted the truncated document %s", doc[:i])
		}
		changed := bytes.Clone(doc)
		changed[i] = rapid.Byte().Draw(t, "byte")
		compareChanged(t, doc, changed)
	})
}

func compareChanged(t *rapid.T, doc, changed []byte) {
	err := Check(changed)
	if err == nil && !json.Valid(changed) || syntaxOnly(err) && json.Valid(changed) {
		t.Fatalf("Check(%q) = %v, encoding/json differs", changed, err)
	}
	if err == nil && Equal(doc, changed) != equalByRat(doc, changed) {
		t.Fatalf("Equal(%s, %s) = %v", doc, changed, Equal(doc, changed))
	}
}

// rewrite decodes the document with encoding/json and encodes it again.
func rewrite(t *rapid.T, doc []byte) []byte {
	v, ok := parse(doc)
	if !ok {
		t.Fatalf("encoding/json refuses %s", doc)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// drawValue returns a valid random document, formatted in random ways.
func drawValue(t *rapid.T, depth int) string {
	kinds := 4
	if depth > 0 {
		kinds = 6
	}
	space := rapid.SampledFrom([]string{"", "", " ", "\n\t", "\r"}).Draw(t, "space")
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return space + rapid.SampledFrom([]string{"true", "false", "null"}).Draw(t, "word")
	case 1:
		return space + rapid.StringMatching(`-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
	case 2, 3:
		return space + drawString(t) + space
	case 4:
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string { return drawValue(t, depth-1) }), 0, 5)
		return "[" + space + strings.Join(items.Draw(t, "items"), ",") + space + "]"
	}
	return drawObject(t, depth, space)
}

// drawObject returns an object of up to twenty members, more than the small form of keySet has.
func drawObject(t *rapid.T, depth int, space string) string {
	name := rapid.Custom(drawString)
	id := func(lit string) string {
		var s string
		_ = json.Unmarshal([]byte(lit), &s)
		return fold([]byte(s))
	}
	var members []string
	for _, k := range rapid.SliceOfNDistinct(name, 0, 20, id).Draw(t, "names") {
		members = append(members, k+space+":"+drawValue(t, depth-2))
	}
	return "{" + strings.Join(members, space+",") + "}"
}

// drawString returns a string with some characters escaped.
func drawString(t *rapid.T) string {
	s := rapid.StringN(0, 8, -1).Draw(t, "string")
	every := rapid.IntRange(1, 5).Draw(t, "escape every")
	var b strings.Builder
	for i, r := range []rune(strings.ReplaceAll(s, "\x00", "")) {
		if i%every == 0 {
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
			continue
		}
		lit, _ := json.Marshal(string(r))
		b.Write(lit[1 : len(lit)-1])
	}
	return `"` + b.String() + `"`
}

// TestTwins verifies that two names are duplicates if and only if they differ at most by case,
// in small and in large sets.
func TestTwins(t *testing.T) {
	testlevel.Rapid()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringOfN(rapid.RuneFrom([]rune("kKsSeEéÉǅǆǄσςΣ\u017f\u212aßẞİiIı")), 1, 2, -1)
		var set keySet
		var kept []string
		for _, key := range rapid.SliceOfN(name, 1, 30).Draw(t, "names") {
			_, clash := set.add([]byte(key))
			if clash != anyFold(kept, key) {
				t.Fatalf("%q next to %q: got clash %v", key, kept, clash)
			}
			if !clash {
				kept = append(kept, key)
			}
		}
	})
}

func anyFold(names []string, key string) bool {
	for _, n := range names {
		if strings.EqualFold(n, key) {
			return true
		}
	}
	return false
}
