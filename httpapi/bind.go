package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/httpapi/internal/room"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/wire"
)

// input is what a handler takes, read from its type once.
type input struct {
	typ      reflect.Type
	path     map[string]int
	query    map[string]int
	body     int // the field, -1 for none
	optional bool
}

func inputOf(t reflect.Type) *input {
	in := &input{typ: t, path: make(map[string]int), query: make(map[string]int), body: -1}
	for i := range t.NumField() {
		f := t.Field(i)
		if name := f.Tag.Get("path"); name != "" {
			in.path[name] = i
		}
		if name := f.Tag.Get("query"); name != "" {
			in.query[name] = i
		}
		if f.Name == "Body" {
			in.body, in.optional = i, f.Tag.Get("optional") == "true"
		}
	}
	return in
}

// bind reads the request into what the handler takes.
func (c *call) bind(v reflect.Value, in *input) error {
	for name, i := range in.path {
		if err := set(v.Field(i), c.values[name], "path parameter "+name); err != nil {
			return err
		}
	}
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return fault.New(fault.Validation, "the query cannot be read")
	}
	for name, values := range query {
		i, known := in.query[name]
		switch {
		case !known:
			return fault.New(fault.Validation, "the query has %q, which means nothing here", name)
		case len(values) > 1:
			return fault.New(fault.Validation, "the query has %q twice", name)
		}
		if err := set(v.Field(i), values[0], "query parameter "+name); err != nil {
			return err
		}
	}
	if in.body < 0 {
		return c.noBody()
	}
	if len(c.body) == 0 && in.optional {
		return nil
	}
	if raw, ok := v.Field(in.body).Addr().Interface().(*document); ok {
		*raw = document{text: c.body}
		if c.yaml || bytes.HasPrefix(bytes.TrimLeft(c.body, " \t\r\n"), []byte("{")) {
			return nil
		}
		return strict.Object(c.body) // what is said to be JSON is not read as YAML
	}
	_, whole := v.Field(in.body).Addr().Interface().(*json.RawMessage)
	if string(bytes.TrimSpace(c.body)) == "null" && !whole { // it would be read as a document in which everything is left out
		return fault.New(fault.Validation, "null where an object is wanted").With("pointer", "")
	}
	return strict.Decode(c.body, v.Field(in.body).Addr().Interface())
}

// span is how long some milliseconds are. What Go cannot hold is the longest that it
// can, so that it is too long for everyone, and not read as a moment.
func span(m wire.Millis) time.Duration {
	const most = wire.Millis(math.MaxInt64 / int64(time.Millisecond))
	return min(max(m, -most), most).Duration()
}

// document is a body that the handler reads itself.
type document struct{ text []byte }

// noBody refuses a body that says something. Of a post, {} says nothing.
func (c *call) noBody() error {
	if len(c.body) > 0 && (c.r.Method != http.MethodPost || string(bytes.Join(bytes.Fields(c.body), nil)) != "{}") {
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
		if err := strict.Text(what, text, maxParameter); err != nil {
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

const (
	maxParameter = 2048
	maxBody      = strict.MaxBytes
)

// readBody reads the body, whole.
func (c *call) readBody() error {
	r := c.r
	if r.Header.Get("Content-Encoding") != "" {
		return fault.New(fault.UnsupportedMediaType, "a body is sent as it is, without Content-Encoding")
	}
	if r.ContentLength > maxBody {
		return tooLarge()
	}
	body, err := c.bytes(http.MaxBytesReader(c.w, r.Body, maxBody))
	if err != nil {
		if f, ok := errors.AsType[*fault.Error](err); ok {
			return f
		}
		if _, over := err.(*http.MaxBytesError); over {
			return tooLarge()
		}
		return fault.New(fault.Validation, "the body could not be read to its end").Wrap(err)
	}
	c.body = body
	if len(body) == 0 {
		return nil
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	switch {
	case err != nil, charset != "" && charset != "utf-8":
	case kind == "application/json", c.route.merges && kind == mergePatch:
		return nil
	case c.route.in.yaml() && (kind == "application/yaml" || kind == "application/x-yaml" || kind == "text/yaml"):
		c.yaml = true
		return nil
	}
	if c.route.merges {
		return fault.New(fault.UnsupportedMediaType, "a body is %s or application/json", mergePatch)
	}
	return fault.New(fault.UnsupportedMediaType, "a body is application/json")
}

// bytes reads a body: a large one when there is room for it and for what is made of it.
func (c *call) bytes(r io.Reader) ([]byte, error) {
	size := c.r.ContentLength
	if size < 0 {
		size = maxBody // the most that it may be
	}
	small, weight := room.SmallBytes, room.BodyWeight
	if c.route.in.yaml() {
		small, weight = room.SmallBytes*room.BodyWeight/room.TreeWeight, room.TreeWeight
	}
	begun, err := io.ReadAll(io.LimitReader(r, int64(small)))
	if err != nil || len(begun) < small || int(size) <= small {
		return begun, err
	}
	if err := c.share.Wait(c.ctx(), weight*int(size)); err != nil {
		return nil, err
	}
	c.share.Client()
	defer c.share.NoClient()
	body := bytes.NewBuffer(make([]byte, 0, int(size)+bytes.MinRead))
	body.Write(begun)
	_, err = body.ReadFrom(c.share.Reader(r))
	return body.Bytes(), err
}

// mergePatch is the content type of RFC 7396.
const mergePatch = "application/merge-patch+json"

// yaml says whether the body may be YAML.
func (in *input) yaml() bool {
	return in.body >= 0 && in.typ.Field(in.body).Type == reflect.TypeFor[document]()
}

func tooLarge() *fault.Error {
	return fault.New(fault.PayloadTooLarge, "a body is %d bytes at the most", maxBody)
}
