package strictjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// Equal documents have the same canonical form, and others do not.
func TestCanonical(t *testing.T) {
	t.Parallel()
	for want, all := range map[string][]string{
		`{"a":1,"b":[1.0,{"x":"\u003cé\"\\\n\u2028\u0001","y":null}],"c":true}`: {
			` { "c" : true , "b" : [ 1.0 , { "y" : null , "x" : "<é\"\\\n\u2028\u0001" } ] , "a" : 1 } `,
			`{"b":[1.0,{"x":"\u003c\u00e9\u0022\u005c\u000A\u2028\u0001","y":null}],"\u0063":true,"a":1}`,
		},
		`[]`: {"[ ]"}, `{}`: {" { } "}, `"/"`: {`"\/"`}, `[[],{},[[]]]`: {"[ [ ] , { } , [ [ ] ] ]"}, `-1e5`: {" -1e5"}, `{"a":2,"ab":1,"b":3}`: {`{"b":3,"ab":1,"a":2}`},
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
	for _, value := range []string{"[]", `{"a":1}`, "1", `{"b":[],"a":{}}`} {
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
