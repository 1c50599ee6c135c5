package table

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Input describes the input of a handler, derived once from its type.
type Input struct {
	Type     reflect.Type
	Path     map[string][]int // field indexes by parameter name
	Query    map[string][]int
	Body     int // index of the field, -1 for none
	Optional bool
}

// InputOf derives the input of a handler from its type.
func InputOf(t reflect.Type) *Input {
	in := &Input{Type: t, Path: make(map[string][]int), Query: make(map[string][]int), Body: -1}
	for _, f := range in.Fields() {
		if name := f.Tag.Get("path"); name != "" {
			in.Path[name] = f.Index
		}
		if name := f.Tag.Get("query"); name != "" {
			in.Query[name] = f.Index
		}
		if f.Name == "Body" {
			in.Body, in.Optional = f.Index[0], f.Tag.Get("optional") == "true"
		}
	}
	return in
}

// Fields returns the fields that are read from a request, including those of embedded structs.
func (in *Input) Fields() []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(in.Type), func(f reflect.StructField) bool { return f.Anonymous })
}

// Request is a received request.
type Request struct {
	*http.Request
	Values map[string]string // path parameters
	Body   []byte
	YAML   bool
}

// Bind parses the request into the handler's input.
func (in *Input) Bind(v reflect.Value, r Request) error {
	for name, at := range in.Path {
		if err := set(v.FieldByIndex(at), r.Values[name], "path parameter "+name); err != nil {
			return err
		}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fault.New(fault.Validation, "the query string is malformed: percent-encode special characters")
	}
	for name, values := range query {
		at, known := in.Query[name]
		switch {
		case !known:
			return fault.New(fault.Validation, "unknown query parameter %q: remove it", name)
		case len(values) > 1:
			return fault.New(fault.Validation, "query parameter %q is specified more than once: specify it only once", name)
		}
		if err := set(v.FieldByIndex(at), values[0], "query parameter "+name); err != nil {
			return err
		}
	}
	if in.Body < 0 {
		return r.empty()
	}
	if len(r.Body) == 0 && in.Optional {
		return nil
	}
	if raw, ok := v.Field(in.Body).Addr().Interface().(*Document); ok {
		*raw = Document{Text: r.Body}
		if r.YAML || bytes.HasPrefix(bytes.TrimLeft(r.Body, " \t\r\n"), []byte("{")) {
			return nil
		}
		return strictjson.Object(r.Body) // a body declared as JSON must not be parsed as YAML
	}
	_, whole := v.Field(in.Body).Addr().Interface().(*json.RawMessage)
	if string(bytes.TrimSpace(r.Body)) == "null" && !whole { // null would decode to an empty document
		return fault.New(fault.Validation, "the body must be a JSON object, got null").With("pointer", "")
	}
	return strictjson.Decode(r.Body, v.Field(in.Body).Addr().Interface())
}

// Document is a body that the handler parses itself.
type Document struct{ Text []byte }

// empty refuses a non-empty body. A POST may send {}.
func (r Request) empty() error {
	if len(r.Body) > 0 && (r.Method != http.MethodPost || string(bytes.Join(bytes.Fields(r.Body), nil)) != "{}") {
		return fault.New(fault.Validation, "this request must not have a body: send it without one")
	}
	return nil
}

// set sets a parameter.
func set(f reflect.Value, text, what string) error {
	if f.Kind() == reflect.Pointer {
		f.Set(reflect.New(f.Type().Elem()))
		f = f.Elem()
	}
	switch f.Kind() {
	case reflect.String:
		if err := strictjson.Text(what, text, MaxParameter); err != nil {
			return err
		}
		f.SetString(text)
		return nil
	case reflect.Bool:
		if text != "true" && text != "false" {
			return fault.New(fault.Validation, "the %s must be true or false, got %.80q", what, text)
		}
		f.SetBool(text == "true")
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fault.New(fault.Validation, "the %s must be an integer, got %.80q", what, text)
	}
	f.SetInt(n)
	return nil
}

// MaxParameter is the maximum length of a path or query parameter.
const MaxParameter = 2048

// MergePatch is the content type of RFC 7396.
const MergePatch = "application/merge-patch+json"

// YAML reports whether the body may be YAML.
func (in *Input) YAML() bool {
	return in.Body >= 0 && in.Type.Field(in.Body).Type == reflect.TypeFor[Document]()
}
