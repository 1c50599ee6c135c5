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

// Input is what a handler takes, read from its type once.
type Input struct {
	Type     reflect.Type
	Path     map[string][]int // the fields, by the names of parameters
	Query    map[string][]int
	Body     int // the field, -1 for none
	Optional bool
}

// InputOf reads what a handler takes from its type.
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

// Fields are what is read of a request, those of embedded structs among them.
func (in *Input) Fields() []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(in.Type), func(f reflect.StructField) bool { return f.Anonymous })
}

// Request is what was sent.
type Request struct {
	*http.Request
	Values map[string]string // of the path
	Body   []byte
	YAML   bool
}

// Bind reads the request into what the handler takes.
func (in *Input) Bind(v reflect.Value, r Request) error {
	for name, at := range in.Path {
		if err := set(v.FieldByIndex(at), r.Values[name], "path parameter "+name); err != nil {
			return err
		}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fault.New(fault.Validation, "the query cannot be read")
	}
	for name, values := range query {
		at, known := in.Query[name]
		switch {
		case !known:
			return fault.New(fault.Validation, "the query has %q, which means nothing here", name)
		case len(values) > 1:
			return fault.New(fault.Validation, "the query has %q twice", name)
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
		return strictjson.Object(r.Body) // what is said to be JSON is not read as YAML
	}
	_, whole := v.Field(in.Body).Addr().Interface().(*json.RawMessage)
	if string(bytes.TrimSpace(r.Body)) == "null" && !whole { // it would be read as a document in which everything is left out
		return fault.New(fault.Validation, "null where an object is wanted").With("pointer", "")
	}
	return strictjson.Decode(r.Body, v.Field(in.Body).Addr().Interface())
}

// Document is a body that the handler reads itself.
type Document struct{ Text []byte }

// empty refuses a body that says something. Of a post, {} says nothing.
func (r Request) empty() error {
	if len(r.Body) > 0 && (r.Method != http.MethodPost || string(bytes.Join(bytes.Fields(r.Body), nil)) != "{}") {
		return fault.New(fault.Validation, "this takes no body")
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
			return fault.New(fault.Validation, "the %s is true or false", what)
		}
		f.SetBool(text == "true")
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fault.New(fault.Validation, "the %s is a whole number", what)
	}
	f.SetInt(n)
	return nil
}

// MaxParameter is how long a parameter of a path or a query may be.
const MaxParameter = 2048

// MergePatch is the content type of RFC 7396.
const MergePatch = "application/merge-patch+json"

// YAML says whether the body may be YAML.
func (in *Input) YAML() bool {
	return in.Body >= 0 && in.Type.Field(in.Body).Type == reflect.TypeFor[Document]()
}
