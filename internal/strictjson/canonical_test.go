package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// Equal documents have the same canonical form, and others do not.
func TestCanonical(t *testing.T) {
	t.Parallel()
	for want, all := range map[string][]string{
		`{"a":1,"b":[1.5,{"x":"\u003cé\"\\\n\u2028\u0001","y":null}],"c":true}`: {
			` { "c" : true , "b" : [ 1.5 , { "y" : null , "x" : "<é\"\\\n\u2028\u0001" } ] , "a" : 1 } `,
			`{"b":[1.5,{"x":"\u003c\u00e9\u0022\u005c\u000A\u2028\u0001","y":null}],"\u0063":true,"a":1}`,
		},
		`[]`: {"[ ]"}, `{}`: {" { } "}, `"/"`: {`"\/"`}, `[[],{},[[]]]`: {"[ [ ] , { } , [ [ ] ] ]"}, `-1.25`: {" -1.25"}, `{"a":2,"ab":1,"b":3}`: {`{"b":3,"ab":1,"a":2}`},
	} {
		for _, doc := range append(all, want) {
			got, ok := Canonical([]byte(doc))
			if !ok || string(got) != want {
				t.Errorf("canonical form of %s is %s, %v, want %s", doc, got, ok, want)
			}
			if in, err := asNumbers(doc); err != nil || !bytes.Equal(in, got) { // the form that encoding/json writes
				t.Errorf("%s: encoding/json writes %s, error %v, want %s", doc, in, err, got)
			}
			var before, after any
			if json.Unmarshal([]byte(doc), &before) != nil || json.Unmarshal(got, &after) != nil || !reflect.DeepEqual(before, after) {
				t.Errorf("%s has value %v, but its canonical form %v", doc, before, after)
			}
		}
	}
	if _, ok := Canonical([]byte(`{"a":1,"a":1}`)); ok {
		t.Error("an invalid document has a canonical form")
	}
}

// Numbers of the same value have the same canonical form, which is as short as a JSON number can be
// written without an exponent, or has one. Other numbers have different forms.
func TestCanonicalNumbers(t *testing.T) {
	t.Parallel()
	var all []string
	for want, lits := range map[string][]string{
		"1": {"1.0", "1e0", "10e-1", "0.1E+1", "1.000"}, "100": {"1e2", "1.0e2", "100.0"}, "0": {"-0", "0.0", "-0e5", "0e-7"}, "-12.5": {"-125e-1", "-12.50"},
		"0.05": {"5e-2", "0.050"}, "0.5": {"5e-1"}, "12": {}, "-7": {"-7.0"}, "120": {"12e1"}, "1e300": {"10e299", "1" + strings.Repeat("0", 300)},
		"123456789012345678901234567890": {}, "1e-300": {"0." + strings.Repeat("0", 299) + "1"}, "1.5": {"15e-1"},
	} {
		for _, lit := range append(lits, want) {
			if got, ok := Canonical([]byte(lit)); !ok || string(got) != want {
				t.Errorf("canonical form of %s is %s, %v, want %s", lit, got, ok, want)
			}
			all = append(all, lit)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		all = append(all, fmt.Sprintf("%d.%de%d", r.IntN(30)-15, r.IntN(30), r.IntN(6)-3))
	}
	for _, a := range all {
		for _, b := range all {
			x, _ := Canonical([]byte(a))
			y, _ := Canonical([]byte(b))
			if bytes.Equal(x, y) != Equal([]byte(a), []byte(b)) {
				t.Fatalf("%s and %s are equal: %v, but their canonical forms are %s and %s", a, b, Equal([]byte(a), []byte(b)), x, y)
			}
		}
	}
}

func asNumbers(doc string) ([]byte, error) {
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// A document of many values takes a few times its own size in memory, and not that of the
// decoded values.
func TestCanonicalTakesLittleMemory(t *testing.T) {
	for _, value := range []string{"[]", `{"a":1}`, "1", "1.0", `{"b":[],"a":{}}`} {
		doc := []byte("[" + strings.Repeat(value+",", MaxBytes/(len(value)+2)) + "1]")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, ok := Canonical(doc)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; !ok || took > uint64(16*len(doc)) {
			t.Errorf("%s: got %v, allocated %d bytes for a document of %d", value, ok, took, len(doc))
		}
	}
}
