package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/fault"
)

type item struct {
	Name  string `json:"name"`
	Count int8   `json:"count,omitempty"`
	Cents uint64 `json:"cents,string"`
	Plain bool
	//lint:ignore U1000 the field must be refused
	hidden int
	Secret string `json:"-"`
	//lint:ignore SA5008 the name is a dash
	Dash string `json:"-,"`
}

type base struct {
	ID   string `json:"id"`
	Note string `json:"note"`
}

type Stamp struct {
	At   time.Time `json:"at"`
	Note []string  `json:"note"`
}

type order struct {
	base
	*Stamp
	Items  []item            `json:"items"`
	ByName map[string]*item  `json:"byName"`
	Ranks  map[int]string    `json:"ranks"`
	Pair   [2]float64        `json:"pair"`
	Any    any               `json:"any"`
	Raw    json.RawMessage   `json:"raw"`
	Num    json.Number       `json:"num"`
	Bytes  []byte            `json:"bytes"`
	Parent *order            `json:"parent"`
	Colour colour            `json:"colour"`
	Shades map[string]colour `json:"shades"`
	Strict nested            `json:"strict"`
}

// colour returns a fault.Error from its unmarshaler.
type colour string

func (c *colour) UnmarshalText(text []byte) error {
	if len(text) != 3 {
		return fault.New(fault.ActionInvalid, "a colour has three letters")
	}
	*c = colour(text)
	return nil
}

// nested unmarshals itself with Decode.
type nested struct{ V item }

func (n *nested) UnmarshalJSON(doc []byte) error { return Decode(doc, &n.V) }

func TestDecode(t *testing.T) {
	doc := `{"id":"o1","at":"2024-05-06T07:08:09Z","items":[{"name":"a","count":-3,"cents":"18446744073709551615","Plain":true,"-":"d"}],
		"byName":{"ANY":{"name":"b"},"other":null},"ranks":{"1":"x"},"pair":[1,2.5],"any":{"Deep":{"DEEP2":[9007199254740993]}},
		"raw":{"Whatever":1.0},"num":12345678901234567890,"bytes":"aGk=","parent":{"id":"o0","parent":{"id":"root"}},
		"colour":"red","shades":{"x":"tan"},"strict":{"name":"n"}}`
	var got order
	if err := Decode([]byte(doc), &got); err != nil {
		t.Fatal(err)
	}
	want := order{
		base:   base{ID: "o1"},
		Stamp:  &Stamp{At: time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)},
		Items:  []item{{Name: "a", Count: -3, Cents: 18446744073709551615, Plain: true, Dash: "d"}},
		ByName: map[string]*item{"ANY": {Name: "b"}, "other": nil},
		Ranks:  map[int]string{1: "x"},
		Pair:   [2]float64{1, 2.5},
		Any:    map[string]any{"Deep": map[string]any{"DEEP2": []any{json.Number("9007199254740993")}}},
		Raw:    json.RawMessage(`{"Whatever":1.0}`),
		Num:    "12345678901234567890",
		Bytes:  []byte("hi"),
		Parent: &order{base: base{ID: "o0"}, Parent: &order{base: base{ID: "root"}}},
		Colour: "red",
		Shades: map[string]colour{"x": "tan"},
		Strict: nested{item{Name: "n"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []refusal{
		{"unknown", `{"items":[{"colour":1}]}`, "/items/0/colour", `unknown field "colour" at /items/0 (byte 11)`},
		{"wrong case", `{"ID":"x"}`, "/ID", `unknown field "ID" at the root (byte 1)`},
		{"wrong case by escape", `{"\u0049d":"x"}`, "/Id", `unknown field "Id" at the root (byte 1)`},
		{"wrong case in an array", `{"items":[{},{"Name":""}]}`, "/items/1/Name", `unknown field "Name" at /items/1 (byte 14)`},
		{"wrong case in a map", `{"byName":{"X":{"NAME":""}}}`, "/byName/X/NAME", `unknown field "NAME" at /byName/X (byte 16)`},
		{"wrong case behind a pointer", `{"parent":{"Id":""}}`, "/parent/Id", `unknown field "Id" at /parent (byte 11)`},
		{"wrong case of an embedded field", `{"At":""}`, "/At", `unknown field "At" at the root (byte 1)`},
		{"wrong case without a tag", `{"items":[{"plain":true}]}`, "/items/0/plain", `unknown field "plain" at /items/0 (byte 11)`},
		{"unexported", `{"items":[{"hidden":1}]}`, "/items/0/hidden", `unknown field "hidden" at /items/0 (byte 11)`},
		{"left out by tag", `{"items":[{"Secret":""}]}`, "/items/0/Secret", `unknown field "Secret" at /items/0 (byte 11)`},
		{"ambiguous", `{"note":""}`, "/note", `unknown field "note" at the root (byte 1)`},
		{"embedded by name", `{"Stamp":{}}`, "/Stamp", `unknown field "Stamp" at the root (byte 1)`},
		{"refused by Check", `{"any":{"a":1,"A":2}}`, "/any/A", `field "A" differs only by case from "a" at /any (byte 14)`},

		{"number for a string", `{"items":[{},{"name":7}]}`, "/items/1/name", "expected a string, got a number at /items/1/name (byte 21)"},
		{"object for a string", `{"id":{"x":1}}`, "/id", "expected a string, got an object at /id (byte 6)"},
		{"array for an object", `{"parent":[]}`, "/parent", "expected an object, got an array at /parent (byte 10)"},
		{"object for an array", `{"items":{}}`, "/items", "expected an array, got an object at /items (byte 9)"},
		{"string for a boolean", `{"items":[{"Plain":"yes"}]}`, "/items/0/Plain", "expected a boolean, got a string at /items/0/Plain (byte 19)"},
		{"too large", `{"items":[{"count":300}]}`, "/items/0/count", "expected a 8-bit integer, got a number at /items/0/count (byte 19)"},
		{"fraction", `{"items":[{"count":1.5}]}`, "/items/0/count", "expected a 8-bit integer, got a number at /items/0/count (byte 19)"},
		{"not quoted", `{"items":[{"cents":"1"},{"cents":1}]}`, "/items/1/cents", "expected an unsigned 64-bit integer in a string, got a number at /items/1/cents (byte 33)"},
		{"bad base64", `{"bytes":"%"}`, "/bytes", "expected a base64 string, got a string at /bytes (byte 9)"},
		{"string for a number", `{"num":"x"}`, "/num", "expected a number, got a string at /num (byte 7)"},
		{"string for a float", `{"pair":[1,"2"]}`, "/pair/1", "expected a number, got a string at /pair/1 (byte 11)"},
		{"bad time", `{"at":"noon"}`, "/at", "invalid value at /at (byte 6)"},
		{"root", `[]`, "", "expected an object, got an array at the root (byte 0)"},
		{"refused from inside Decode", `{"parent":{"strict":{"NAME":1}}}`, "/parent/strict/NAME",
			`unknown field "NAME" at the root (byte 1), in the value at /parent/strict`},
	}
	for _, r := range tests {
		t.Run(r.name, func(t *testing.T) {
			expect(t, Decode([]byte(r.doc), new(order)), fault.Validation, r.pointer, r.message)
		})
	}
}

func TestDecodeKeepsOwnCode(t *testing.T) {
	expect(t, Decode([]byte(`{"shades":{"a/b":"blue"}}`), new(order)), fault.ActionInvalid,
		"/shades/a~1b", "a colour has three letters, in the value at /shades/a~1b")
}

// An error whose place is unknown has no pointer.
func TestDecodeUntold(t *testing.T) {
	err := Decode([]byte(`{"ranks":{"first":"x"}}`), new(order))
	expect(t, err, fault.Validation, nil, "the document does not match the expected type")
	if errors.Unwrap(err) == nil {
		t.Error("error does not wrap its cause")
	}
}

func TestDecodeWantsPointer(t *testing.T) {
	for _, into := range []any{nil, order{}, (*order)(nil)} {
		if err := Decode([]byte(`{}`), into); fault.CodeOf(err) != fault.Internal {
			t.Errorf("Decode into %T returned %v, want an internal error", into, err)
		}
	}
}

type inner1 struct {
	A string `json:"a"`
	B string
	C string
}

type inner2 struct {
	A string
	B string `json:"B"`
	C string
	inner3
}

type inner3 struct {
	D    string
	C    string // hidden by two fields that cancel each other
	Self *inner1
}

type named struct{ X string }

type Loop struct {
	*Loop
	V string
}

// Decode accepts the names that encoding/json writes.
func TestDecodeKnowsTheFieldsOfEncodingJSON(t *testing.T) {
	type tagged struct {
		inner1
		inner2
		named `json:"named"`
		Loop
		fmt.Stringer
		B int `json:"b"`
	}
	got := slices.Sorted(maps.Keys(shapeOf(reflect.TypeFor[tagged]()).fields))
	want := slices.Sorted(maps.Keys(exactFields(reflect.TypeFor[tagged]())))
	if !slices.Equal(got, want) {
		t.Errorf("Decode accepts fields %q, encoding/json %q", got, want)
	}
}

// exactFields returns the JSON names of the fields of a struct, by encoding a value in which
// each pointer is set.
func exactFields(t reflect.Type) map[string]any {
	v := reflect.New(t)
	fill(v.Elem(), 3)
	doc, err := json.Marshal(v.Interface())
	if err != nil {
		panic(err)
	}
	var m map[string]any
	if err := json.Unmarshal(doc, &m); err != nil {
		panic(err)
	}
	return m
}

func fill(v reflect.Value, depth int) {
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() == reflect.Pointer && f.CanSet() && depth > 0 {
			f.Set(reflect.New(f.Type().Elem()))
			f = f.Elem()
		}
		if f.Kind() == reflect.Struct {
			fill(f, depth-1)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	doc := []byte(`{"id":"o1","items":[{"name":"a","count":3},{"name":"b","count":4}],"parent":{"id":"o0"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if err := Decode(doc, new(order)); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleDecode() {
	var in struct {
		Role string `json:"role"`
	}
	fmt.Println(Decode([]byte(`{"role":"admin"}`), &in), in.Role)
	fmt.Println(Decode([]byte(`{"ROLE":"admin"}`), &in))
	// Output:
	// <nil> admin
	// VALIDATION_ERROR: unknown field "ROLE" at the root (byte 1)
}
