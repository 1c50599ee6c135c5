package table

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast-go/holdfast/internal/idempotency"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/wire"
)

// The OpenAPI document is generated from the route table and the types of package wire. The huma
// library only generates the schemas. It does not parse requests, because its parser accepts
// members that ours refuses (repeated ones, or ones that differ in case).

// OpenAPI generates the OpenAPI document. This takes as long as about fifty requests, and most
// processes never serve it, so the caller should generate it lazily.
func (t Table[C]) OpenAPI() []byte {
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaName)
	doc := &huma.OpenAPI{OpenAPI: "3.1.0", Info: &huma.Info{Title: "Holdfast", Version: "1",
		Description: "A durable workflow and state engine for work that must not happen twice.",
		Contact:     &huma.Contact{Name: "Holdfast", URL: "https://github.com/holdfast-go/holdfast"},
		License:     &huma.License{Name: "Apache 2.0", URL: "https://www.apache.org/licenses/LICENSE-2.0"}},
		Tags:    tags,
		Servers: []*huma.Server{{URL: strings.TrimSuffix(Base, "/")}},
		Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
			"bearer": {Type: "http", Scheme: "bearer", Description: "hf_<id>_<secret>"},
			"apiKey": {Type: "apiKey", In: "header", Name: "X-Api-Key"},
			"cookie": {Type: "apiKey", In: "cookie", Name: "__Host-holdfast", Description: "The session of a browser. Over plain HTTP the name is holdfast."}}},
		Security: []map[string][]string{{"bearer": {}}, {"apiKey": {}}, {"cookie": {}}}}
	problem := schemas.Schema(reflect.TypeFor[wire.Problem](), true, "Problem")
	doc.Components.Responses = make(map[string]*huma.Response)
	for _, x := range problems {
		doc.Components.Responses[x.name] = &huma.Response{Description: x.text, Content: map[string]*huma.MediaType{wire.ProblemType: {Schema: problem}}}
	}
	for _, r := range t {
		doc.AddOperation(r.operation(schemas))
	}
	for _, s := range schemas.Map() {
		fixSchema(s)
	}
	for name, member := range orNull {
		if s := schemas.Map()[name]; s != nil {
			s.Properties[member] = &huma.Schema{Description: s.Properties[member].Description, AnyOf: []*huma.Schema{s.Properties[member], {Type: "null"}}}
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

// schemaName names the schema of a type. EffectState is also the name that generators give to the member state of
// Effect.
func schemaName(t reflect.Type, hint string) string {
	if t == reflect.TypeFor[wire.EffectState]() {
		return "JournaledEffect"
	}
	return huma.DefaultSchemaNamer(t, hint)
}

// tags are the groups of operations.
var tags = []*huma.Tag{
	{Name: "approvals", Description: "Decisions that runs wait for."},
	{Name: "batches", Description: "Sets of items that are processed in parallel and paid from a wallet."},
	{Name: "bulk", Description: "One action on many runs, positions or operations."},
	{Name: "claims", Description: "Steps of entities that a client executes itself, under a lease."},
	{Name: "handlers", Description: "Remote handlers: workers, or URLs that the server calls."},
	{Name: "keys", Description: "API keys and their roles."},
	{Name: "lifecycles", Description: "State machines of entities: configs, entities and their steps."},
	{Name: "operations", Description: "Operations that have not ended or have contradictions."},
	{Name: "reactions", Description: "Reactions to the events of streams: definitions, positions, leases and repairs."},
	{Name: "runs", Description: "Workflow definitions and their executions."},
	{Name: "scopes", Description: "Versioned state that many callers can change concurrently."},
	{Name: "streams", Description: "Streams of events, and the feed of all events."},
	{Name: "tasks", Description: "Tasks that workers claim and complete."},
	{Name: "visibility", Description: "What needs a person, what there is, and which nodes run."},
	{Name: "wallets", Description: "Balances of points and their ledgers."},
	{Name: "webhooks", Description: "URLs that receive events."},
	{Name: "secrets", Description: "Named values that outgoing calls contain, and that no request returns."},
	{Name: "workspaces", Description: "Workspaces and their contents."},
}

// problem is an error response that many operations share.
type problem struct {
	status     int
	name, text string
}

var (
	badRequest     = problem{http.StatusBadRequest, "BadRequest", "The request is invalid: VALIDATION_ERROR. The pointer says where."}
	unauthorized   = problem{http.StatusUnauthorized, "Unauthorized", "The API key is missing or invalid: AUTH_ERROR."}
	forbidden      = problem{http.StatusForbidden, "Forbidden", "The API key may not do this: FORBIDDEN."}
	notFound       = problem{http.StatusNotFound, "NotFound", "The object does not exist in this workspace: NOT_FOUND."}
	conflict       = problem{http.StatusConflict, "Conflict", "The state of the object does not allow this request, or another request is in progress. The code says which."}
	precondition   = problem{http.StatusPreconditionFailed, "PreconditionFailed", "The object is at another version: PRECONDITION_FAILED."}
	tooLarge       = problem{http.StatusRequestEntityTooLarge, "PayloadTooLarge", "The body is too large: PAYLOAD_TOO_LARGE."}
	mediaType      = problem{http.StatusUnsupportedMediaType, "UnsupportedMediaType", "The body has an unsupported media type or encoding: UNSUPPORTED_MEDIA_TYPE."}
	unprocessable  = problem{http.StatusUnprocessableEntity, "Unprocessable", "The document breaks rules, or the idempotency key was used for a different request. The code says which."}
	tooMany        = problem{http.StatusTooManyRequests, "TooManyRequests", "The API key exceeds its rate: RATE_LIMITED, or the workspace has reached a quota: QUOTA_EXCEEDED. Retry after Retry-After seconds, if the header is set."}
	anyOtherStatus = problem{0, "Error", "Any other error."}
	problems       = []problem{badRequest, unauthorized, forbidden, notFound, conflict, precondition, tooLarge, mediaType, unprocessable, tooMany, anyOtherStatus}
)

// refusals returns the error responses of a route.
func (r *Route[C]) refusals() map[string]*huma.Response {
	all := []problem{badRequest, unauthorized, forbidden, tooMany}
	if strings.Contains(r.Path, "{") || r.In.Body >= 0 { // a body may name objects too
		all = append(all, notFound)
	}
	if r.Method != http.MethodGet {
		all = append(all, conflict, unprocessable)
	}
	if r.In.Body >= 0 {
		all = append(all, tooLarge, mediaType)
	}
	if r.Conditional {
		all = append(all, precondition)
	}
	ref := func(p problem) *huma.Response { return &huma.Response{Ref: "#/components/responses/" + p.name} }
	out := map[string]*huma.Response{"default": ref(anyOtherStatus)}
	for _, p := range all {
		out[strconv.Itoa(p.status)] = ref(p)
	}
	return out
}

// description describes a route: its summary, and what its table entry says about it.
func (r *Route[C]) description() string {
	all := []string{r.Summary}
	if r.More != "" {
		all = append(all, strings.ReplaceAll(r.More, "[Key]", "idempotency key"))
	}
	if r.Stream {
		all = append(all, "With Accept: text/event-stream, the response is a stream of server-sent events, which Last-Event-ID resumes.")
	}
	if r.Idempotency != Never {
		all = append(all, "A request that is repeated with the same Idempotency-Key takes effect once.")
	}
	roles := []string{string(keys.Admin)}
	for _, role := range r.Roles {
		roles = append(roles, string(role))
	}
	slices.Sort(roles)
	return strings.Join(append(all, "Roles: "+strings.Join(roles, ", ")+"."), " ")
}

// orNull are members that are an object or null, which huma does not express.
var orNull = map[string]string{"Entity": "claim", "Resolved": "operation", "Session": "key", "DiagramEdge": "labelAt"}

// operation describes a route.
func (r *Route[C]) operation(schemas huma.Registry) *huma.Operation {
	op := &huma.Operation{Method: r.Method, Path: "/" + r.Path, OperationID: r.ID, Summary: r.Summary, Description: r.description(), Tags: []string{r.Tag},
		Responses: r.refusals()}
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
