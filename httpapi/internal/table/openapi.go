package table

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/wire"
)

// The OpenAPI document is generated from the route table and the types of package wire. The huma
// library only generates the schemas. It does not parse requests, because its parser accepts
// members that ours refuses (repeated ones, or ones that differ in case).

// OpenAPI generates the OpenAPI document. This takes as long as about fifty requests, and most
// processes never serve it, so the caller should generate it lazily.
func (t Table[C]) OpenAPI() []byte {
	schemas := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	doc := &huma.OpenAPI{OpenAPI: "3.1.0", Info: &huma.Info{Title: "Holdfast", Version: "1",
		Description: "A durable workflow and state engine for work that must not happen twice."},
		Servers: []*huma.Server{{URL: strings.TrimSuffix(Base, "/")}},
		Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
			"bearer": {Type: "http", Scheme: "bearer", Description: "hf_<id>_<secret>"},
			"apiKey": {Type: "apiKey", In: "header", Name: "X-Api-Key"}}},
		Security: []map[string][]string{{"bearer": {}}, {"apiKey": {}}}}
	problem := schemas.Schema(reflect.TypeFor[wire.Problem](), true, "Problem")
	for _, r := range t {
		doc.AddOperation(r.operation(schemas, problem))
	}
	for _, s := range schemas.Map() {
		fixSchema(s)
	}
	for name, member := range orNull {
		if s := schemas.Map()[name]; s != nil {
			s.Properties[member] = &huma.Schema{AnyOf: []*huma.Schema{s.Properties[member], {Type: "null"}}}
		}
	}
	if p := schemas.Map()["Problem"]; p != nil {
		p.AdditionalProperties = true // the fields of each code
	}
	text, err := json.Marshal(doc)
	if err != nil { // cannot fail for our own types
		panic(err)
	}
	return text
}

// orNull are members that are an object or null, which huma does not express.
var orNull = map[string]string{"Entity": "claim", "Resolved": "operation"}

// operation describes a route.
func (r *Route[C]) operation(schemas huma.Registry, problem *huma.Schema) *huma.Operation {
	op := &huma.Operation{Method: r.Method, Path: "/" + r.Path, OperationID: r.ID, Summary: r.Summary, Tags: []string{r.Tag},
		Responses: map[string]*huma.Response{"default": {Description: "An error.",
			Content: map[string]*huma.MediaType{wire.ProblemType: {Schema: problem}}}}}
	for _, f := range r.In.Fields() {
		if p := parameter(f, schemas); p != nil {
			op.Parameters = append(op.Parameters, p)
		}
	}
	if r.Idempotency != Never {
		op.Parameters = append(op.Parameters, &huma.Param{Name: idempotency.KeyHeader, In: "header", Description: "Idempotency key. A request that is repeated with the same key takes effect only once.",
			Schema: &huma.Schema{Type: "string", MinLength: ptr(1), MaxLength: ptr(255)}})
	}
	if r.In.Body >= 0 {
		body := &huma.MediaType{Schema: schemaOf(r.In.Type.Field(r.In.Body).Type, schemas)}
		op.RequestBody = &huma.RequestBody{Required: !r.In.Optional, Content: map[string]*huma.MediaType{"application/json": body}}
		if r.Merges {
			body.Schema = &huma.Schema{Type: "object", AdditionalProperties: true}
			op.RequestBody.Content[MergePatch] = body
		}
	}
	ok := &huma.Response{Description: http.StatusText(r.Status)}
	if r.Conditional {
		r.describeConditions(op, ok)
	}
	if r.Out.Kind() == reflect.Pointer {
		op.Responses[strconv.Itoa(http.StatusNoContent)] = &huma.Response{Description: "Done."}
		return op
	}
	ok.Content = map[string]*huma.MediaType{"application/json": {Schema: schemaOf(r.Out, schemas)}}
	if r.Stream {
		ok.Content["text/event-stream"] = &huma.MediaType{Schema: &huma.Schema{Type: "string"}}
	}
	if r.SVG {
		ok.Content["image/svg+xml"] = &huma.MediaType{Schema: &huma.Schema{Type: "string"}}
	}
	op.Responses[strconv.Itoa(r.Status)] = ok
	if r.Also != 0 {
		op.Responses[strconv.Itoa(r.Also)] = &huma.Response{Description: http.StatusText(r.Also), Content: ok.Content}
	}
	return op
}

// describeConditions describes the headers of a resource that has an entity tag.
func (r *Route[C]) describeConditions(op *huma.Operation, ok *huma.Response) {
	header := func(name, text string) {
		op.Parameters = append(op.Parameters, &huma.Param{Name: name, In: "header", Description: text, Schema: &huma.Schema{Type: "string"}})
	}
	if r.Method == http.MethodGet {
		header("If-Match", "Expected ETag, or a list of ETags. The response is 412 if none matches.")
		header("If-None-Match", "Known ETag. The response is 304 if the ETag is still current.")
		op.Responses[strconv.Itoa(http.StatusNotModified)] = &huma.Response{Description: http.StatusText(http.StatusNotModified)}
	} else {
		header("If-Match", "Expected ETag, or * for any existing scope. The response is 412 if the ETag does not match.")
		header("If-None-Match", "Only * is allowed. The response is 412 if the scope already exists.")
	}
	ok.Headers = map[string]*huma.Param{"ETag": {Description: "The version in quotes; absent if the scope does not exist.", Schema: &huma.Schema{Type: "string"}}}
}

func schemaOf(t reflect.Type, schemas huma.Registry) *huma.Schema {
	if t == reflect.TypeFor[Document]() {
		return &huma.Schema{Type: "object", AdditionalProperties: true}
	}
	return schemas.Schema(t, true, t.Name())
}

func ptr[T any](v T) *T { return &v }

// parameter describes a field that is read from the path or the query.
func parameter(f reflect.StructField, schemas huma.Registry) *huma.Param {
	p := &huma.Param{Description: f.Tag.Get("doc")}
	switch {
	case f.Tag.Get("path") != "":
		p.Name, p.In, p.Required = f.Tag.Get("path"), "path", true
	case f.Tag.Get("query") != "":
		p.Name, p.In = f.Tag.Get("query"), "query"
	default:
		return nil
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	p.Schema = schemas.Schema(t, true, f.Name)
	switch p.Name {
	case "limit":
		p.Schema = &huma.Schema{Type: "integer", Minimum: ptr(1.0), Maximum: ptr(1000.0), Default: 100}
		p.Description = "Maximum number of elements. A page also ends after 8 MiB, so check next to find out whether there may be more elements."
	case "cursor":
		p.Description = "Position to continue from: the value of next in the previous page."
	}
	return p
}

// fixSchema corrects a schema: our lists are never null, and times have the format date-time.
func fixSchema(s *huma.Schema) {
	if s == nil {
		return
	}
	if s.Type == huma.TypeArray {
		s.Nullable = false
	}
	fixSchema(s.Items)
	for name, p := range s.Properties {
		fixSchema(p)
		if p.Type == huma.TypeString && isTime(name) {
			p.Format = "date-time"
		}
	}
}

// isTime reports whether a member with this name is a time.
func isTime(name string) bool {
	switch name {
	case "at", "since", "until", "notBefore", "timestamp":
		return true
	}
	return strings.HasSuffix(name, "At") || strings.HasSuffix(name, "Until")
}
