package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi/datamodel"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/lease"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/wire"
)

type object = map[string]any

// spec is the OpenAPI document of an API.
type spec struct {
	t   testing.TB
	doc object
}

func (d *testAPI) spec() *spec {
	d.t.Helper()
	s := &spec{d.t, nil}
	resp := d.ask("GET", "openapi.json", nil, &s.doc)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" {
		d.t.Fatalf("got status %d %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	return s
}

// follow resolves a reference.
func (s *spec) follow(schema object) object {
	ref, ok := schema["$ref"].(string)
	if !ok {
		return schema
	}
	var at any = s.doc
	for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
		at = at.(object)[part]
	}
	found, ok := at.(object)
	if !ok {
		s.t.Errorf("reference %s has no target", ref)
		return object{}
	}
	return found
}

// each calls f with every object of the document.
func each(v any, f func(object)) {
	switch v := v.(type) {
	case object:
		f(v)
		for _, x := range v {
			each(x, f)
		}
	case []any:
		for _, x := range v {
			each(x, f)
		}
	}
}

func (s *spec) operation(r httpapi.Route) object {
	path, _ := s.doc["paths"].(object)["/"+r.Path].(object)
	op, _ := path[strings.ToLower(r.Method)].(object)
	return op
}

func list(v any) []object {
	all, _ := v.([]any)
	out := make([]object, len(all))
	for i, x := range all {
		out[i] = x.(object)
	}
	return out
}

// TestTheOpenAPIDocumentIsWhole verifies that the document is complete: it has every route and no
// other, its references resolve, its names are unique, and path parameters are declared.
func TestTheOpenAPIDocumentIsWhole(t *testing.T) {
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{})
	s := d.spec()
	if s.doc["openapi"] != "3.1.0" || s.doc["info"].(object)["title"] == "" || s.doc["info"].(object)["version"] == "" {
		t.Errorf("got openapi %v, info %v", s.doc["openapi"], s.doc["info"])
	}
	each(s.doc, func(o object) {
		if o["$ref"] != nil {
			s.follow(o)
		}
		if kind, ok := o["type"].(string); ok && kind == "array" && o["items"] == nil {
			t.Errorf("array without items: %v", o)
		}
		if names, ok := o["required"].([]any); ok {
			for _, name := range names {
				if o["properties"].(object)[name.(string)] == nil {
					t.Errorf("property %v is required but not described", name)
				}
			}
		}
	})
	count, ids := 0, make(map[string]bool)
	for _, methods := range s.doc["paths"].(object) {
		count += len(methods.(object))
	}
	if count != len(d.api.Routes()) {
		t.Errorf("got %d operations for %d routes", count, len(d.api.Routes()))
	}
	for _, r := range d.api.Routes() {
		op := s.operation(r)
		if op == nil {
			t.Errorf("%s %s is missing", r.Method, r.Path)
			continue
		}
		id, _ := op["operationId"].(string)
		if id != r.ID || ids[id] {
			t.Errorf("%s %s: got operationId %q, want %q, unique", r.Method, r.Path, id, r.ID)
		}
		ids[id] = true
		var declared, written []string
		key := false
		for _, p := range list(op["parameters"]) {
			if p["in"] == "path" {
				declared = append(declared, p["name"].(string))
				if p["required"] != true {
					t.Errorf("%s: path parameter %s is not required", id, p["name"])
				}
			}
			key = key || p["in"] == "header" && p["name"] == "Idempotency-Key"
			if p["schema"] == nil {
				t.Errorf("%s: parameter %s has no schema", id, p["name"])
			}
		}
		for _, m := range regexp.MustCompile(`\{([^}]+)\}`).FindAllStringSubmatch(r.Path, -1) {
			written = append(written, m[1])
		}
		slices.Sort(declared)
		slices.Sort(written)
		if !slices.Equal(declared, written) || key != r.Keyed {
			t.Errorf("%s: path has parameters %q, declared are %q; takes a key: %v", id, written, declared, key)
		}
		good := 0
		for status, resp := range op["responses"].(object) {
			if strings.HasPrefix(status, "2") {
				good++
			}
			if s.follow(resp.(object))["description"] == "" {
				t.Errorf("%s: response %s has no description", id, status)
			}
		}
		if good == 0 || op["responses"].(object)["default"] == nil {
			t.Errorf("%s: got responses %v, want a success and a default", id, slices.Collect(maps.Keys(op["responses"].(object))))
		}
	}
}

// TestTheOpenAPIDocumentPassesLinters verifies what linters and generators require of the document: every operation has
// an id, a summary, a description, one declared tag and refusals of its own; the document has servers, a license and a
// contact; and no two types have the same name once a generator has made Go names of them. It enforces the rules of
// Redocly, Spectral and oapi-codegen that the document has broken before.
func TestTheOpenAPIDocumentPassesLinters(t *testing.T) {
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{})
	s := d.spec()
	info := s.doc["info"].(object)
	for _, of := range []string{"license", "contact"} {
		about, _ := info[of].(object)
		if about["name"] == nil || about["url"] == nil {
			t.Errorf("info has %s %v, want a name and a url", of, about)
		}
	}
	if servers := list(s.doc["servers"]); len(servers) == 0 || servers[0]["url"] != "/api/v1" {
		t.Errorf("got servers %v", servers)
	}
	tags := make(map[any]int) // operations by tag
	for _, tag := range list(s.doc["tags"]) {
		if _, twice := tags[tag["name"]]; twice || tag["description"] == nil {
			t.Errorf("tag %v is declared twice or has no description", tag)
		}
		tags[tag["name"]] = 0
	}
	for path, methods := range s.doc["paths"].(object) {
		if strings.HasSuffix(path, "/") || strings.Contains(path, "?") {
			t.Errorf("path %s ends with a slash or has a query", path)
		}
		for method, op := range methods.(object) {
			s.lint(method+" "+path, op.(object), tags)
		}
	}
	for tag, n := range tags {
		if n == 0 {
			t.Errorf("tag %v is declared but not used", tag)
		}
	}
	s.goNames()
}

// lint checks one operation.
func (s *spec) lint(name string, op object, tags map[any]int) {
	s.t.Helper()
	for _, of := range []string{"operationId", "summary", "description"} {
		if text, _ := op[of].(string); text == "" || strings.Contains(text, "[") {
			s.t.Errorf("%s: %s is %q", name, of, text)
		}
	}
	own, _ := op["tags"].([]any)
	if len(own) != 1 {
		s.t.Errorf("%s has tags %v, want one", name, own)
	}
	for _, tag := range own {
		if _, declared := tags[tag]; !declared {
			s.t.Errorf("%s: tag %v is not declared", name, tag)
		}
		tags[tag]++
	}
	for _, p := range list(op["parameters"]) {
		if p["in"] != "path" && p["description"] == nil {
			s.t.Errorf("%s: parameter %s has no description", name, p["name"])
		}
	}
	refused := 0
	for status, resp := range op["responses"].(object) {
		resp := s.follow(resp.(object))
		if resp["description"] == nil {
			s.t.Errorf("%s: response %s has no description", name, status)
		}
		if !strings.HasPrefix(status, "4") && status != "default" {
			continue
		}
		refused++
		content, _ := resp["content"].(object)
		media, _ := content[wire.ProblemType].(object)
		if schema, _ := media["schema"].(object); schema["$ref"] != "#/components/schemas/Problem" {
			s.t.Errorf("%s: response %s is not a problem document: %v", name, status, resp)
		}
	}
	for _, status := range []string{"400", "401", "403", "429", "default"} {
		if op["responses"].(object)[status] == nil {
			s.t.Errorf("%s lacks the response %s", name, status)
		}
	}
	if refused < 5 {
		s.t.Errorf("%s has %d refusals", name, refused)
	}
}

// goNames fails if two types have the same name in Go. A generator makes a type of every schema, and of every member,
// parameter and element that is an enum or an object: Effect with an enum state becomes EffectState.
func (s *spec) goNames() {
	word := regexp.MustCompile(`[A-Za-z0-9]+`)
	goName := func(parts ...string) (name string) {
		for _, p := range word.FindAllString(strings.Join(parts, " "), -1) {
			name += strings.ToUpper(p[:1]) + p[1:]
		}
		return name
	}
	seen := make(map[string]string)
	add := func(of string, parts ...string) {
		name := goName(parts...)
		if was := seen[strings.ToLower(name)]; was != "" {
			s.t.Errorf("%s and %s are both named %s in Go", was, of, name)
		}
		seen[strings.ToLower(name)] = of
	}
	var inside func(of string, schema object, parts ...string)
	inside = func(of string, schema object, parts ...string) {
		if items, ok := schema["items"].(object); ok {
			inside(of+"[]", items, append(slices.Clone(parts), "Item")...)
		}
		properties, _ := schema["properties"].(object)
		for member, p := range properties {
			p, at := p.(object), append(slices.Clone(parts), member)
			if p["enum"] != nil || p["properties"] != nil {
				add(of+"."+member, at...)
			}
			inside(of+"."+member, p, at...)
		}
	}
	for name, schema := range s.doc["components"].(object)["schemas"].(object) {
		add("schema "+name, name)
		inside("schema "+name, schema.(object), name)
	}
	for name := range s.doc["components"].(object)["responses"].(object) {
		add("response "+name, name)
	}
	for _, methods := range s.doc["paths"].(object) {
		for _, op := range methods.(object) {
			id := op.(object)["operationId"].(string)
			for _, suffix := range []string{"Params", "JSONRequestBody", "Response", "JSONBody"} {
				add("operation "+id, id, suffix)
			}
			for _, p := range list(op.(object)["parameters"]) {
				if p["schema"].(object)["enum"] != nil {
					add(id+" parameter "+p["name"].(string), id, "Params", p["name"].(string))
				}
			}
		}
	}
}

// fits returns how a value violates a schema, or "".
func (s *spec) fits(v any, schema object, at string) string {
	schema = s.follow(schema)
	if any, ok := schema["anyOf"]; ok {
		why := ""
		for _, one := range list(any) {
			if why = s.fits(v, one, at); why == "" {
				return ""
			}
		}
		return why
	}
	kinds, ok := schema["type"].([]any)
	if one, single := schema["type"].(string); single {
		kinds, ok = []any{one}, true
	}
	if ok && !slices.Contains(kinds, any(kindOf(v))) && !(kindOf(v) == "integer" && slices.Contains(kinds, any("number"))) {
		return fmt.Sprintf("%s is %v, want %v", at, v, kinds)
	}
	if choices, ok := schema["enum"].([]any); ok && v != nil && !slices.Contains(choices, v) {
		return fmt.Sprintf("%s is %v, want one of %v", at, v, choices)
	}
	switch v := v.(type) {
	case []any:
		items, _ := schema["items"].(object)
		for i, x := range v {
			if why := s.fits(x, items, at+"/"+strconv.Itoa(i)); why != "" {
				return why
			}
		}
	case object:
		properties, _ := schema["properties"].(object)
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, there := v[name.(string)]; !there {
				return at + " lacks " + name.(string)
			}
		}
		for name, x := range v {
			if p, known := properties[name].(object); known {
				if why := s.fits(x, p, at+"/"+name); why != "" {
					return why
				}
			} else if schema["additionalProperties"] == false {
				return at + " has " + name + ", which is not described"
			}
		}
	}
	return ""
}

func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == math.Trunc(v) { // also for the largest numbers
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// maker generates values, most of them valid.
type maker struct {
	*spec
	*rand.Rand
}

// words are the strings to choose from: existing names, and troublesome ones.
var words = []string{"invoice", "i1", "i2", "s", "t", "r", "q", "admin", "system", "close", "void", "open", "closed", "closing", "n", "*", "me", "success",
	"", " ", ".", "..", "a/b", "$entity/invoice/i1", "$feed", "ü", "😀", "a\nb", "\u200b", "'; DROP TABLE x; --", "%", "_", "\\", "\"", "null", "0", "-1", "(", "^s$",
	"a\x00b", lease.ID("tsk_", "invoice", "\x00", "i1", "s"), lease.ID("rct_", "r", "\x00", "1", "1"), lease.ID("stp_", "\x00", "s", "1"),
	lease.ID("apr_", "\x00", "s", "1"), lease.ID("opr_", "\x00", "s", "1"), lease.ID("bit_", "\x00", "k", "h", "1"), strings.Repeat("x", 300), strings.Repeat("x", 3000), "p1", "clm_AAAAAAAAAAAAAAAAAAAAAA", "00000000000000000000000000", "019a0000-0000-7000-8000-000000000000"}

var numbers = []string{"0", "1", "2", "3", "-1", "10", "100", "1000", "1001", "2147483647", "2147483648", "-2147483649", "-9223372036854775808", "9223372036854775807", "60000"}

var trouble = []string{"null", "true", `""`, "[]", "{}", "1.5", "1e400", "9223372036854775808", `"\ud800"`, `"\u0000"`, `"x"`, "[[]]", `{"a":1,"a":2}`, "-0", "1E5", "nonsense", ""}

func (m *maker) pick(all []string) string { return all[m.IntN(len(all))] }

// value generates a document of a schema; bad is the probability of spoiling a part.
func (m *maker) value(schema object, name string, bad float64, depth int) string {
	if m.Float64() < bad {
		return m.pick(trouble)
	}
	schema = m.follow(schema)
	if choices, ok := schema["enum"].([]any); ok {
		text, _ := json.Marshal(choices[m.IntN(len(choices))])
		return string(text)
	}
	kind, _ := schema["type"].(string)
	switch {
	case name == "waitMs": // it would wait
		return m.pick([]string{"0", "1", "-1", "-9223372036854775808"})
	case kind == "integer":
		return m.pick(numbers)
	case kind == "boolean":
		return m.pick([]string{"true", "false"})
	case kind == "string":
		text, _ := json.Marshal(m.pick(words))
		return string(text)
	case kind == "array":
		parts := make([]string, m.IntN(3))
		for i := range parts {
			parts[i] = m.value(schema["items"].(object), "", bad, depth+1)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case kind == "object":
		return m.members(schema, bad, depth)
	}
	return m.pick([]string{"{}", `{"a":9007199254740993}`, "1", `"x"`, "[1,{}]", "null"})
}

func (m *maker) members(schema object, bad float64, depth int) string {
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(object)
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		must := slices.Contains(required, any(name))
		if must && m.Float64() < bad || !must && name != "waitMs" && m.IntN(2) == 0 { // without it, the request would wait
			continue
		}
		parts = append(parts, strconv.Quote(name)+":"+m.value(properties[name].(object), name, bad, depth+1))
	}
	if m.Float64() < bad {
		parts = append(parts, `"unknown":1`)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// request generates a request for a route.
func (m *maker) request(r httpapi.Route, seen []string) *http.Request {
	op := m.operation(r)
	bad := m.pick([]string{"0", "0", "0.05", "0.3"})
	rate, _ := strconv.ParseFloat(bad, 64)
	path := pathOf(r, func(name string) string {
		switch {
		case name == "name" && strings.HasPrefix(r.Path, "lifecycles") && m.IntN(4) > 0:
			return "invoice"
		case len(seen) > 0 && m.IntN(3) == 0:
			return url.PathEscape(seen[m.IntN(len(seen))])
		}
		return url.PathEscape(m.pick(words))
	})
	query := url.Values{}
	header := http.Header{}
	for _, p := range list(op["parameters"]) {
		name := p["name"].(string)
		if m.IntN(3) > 0 || p["in"] == "path" {
			continue
		}
		text := strings.Trim(m.value(p["schema"].(object), name, rate, 0), `"`)
		if p["in"] == "query" {
			query.Set(name, text)
		} else if strings.HasPrefix(name, "If-") {
			header.Set(name, m.pick([]string{`"0"`, `"1"`, `*`, `W/"0"`, text}))
		} else if key := m.pick(words); !strings.ContainsAny(key, "\n") {
			header.Set(name, key+r.ID)
		}
	}
	var body []byte
	if b, ok := op["requestBody"].(object); ok {
		header.Set("Content-Type", "application/json")
		schema := b["content"].(object)["application/json"].(object)["schema"].(object)
		body = []byte(m.value(schema, "", rate, 0))
		if m.Float64() < rate && len(body) > 0 { // replaces or drops a byte
			i := m.IntN(len(body))
			body = slices.Concat(body[:i], []byte{byte(m.IntN(256))}, body[i+m.IntN(2):])
		}
	}
	req, err := http.NewRequest(r.Method, "http://localhost/api/v1/"+path+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	req.Header = header
	return req
}

// TestRequestsMadeFromTheDocument verifies that valid and spoilt requests generated from the
// document are served or refused, never with a server error, and that responses match the document.
func TestRequestsMadeFromTheDocument(t *testing.T) {
	t.Parallel()
	eachTestAPI(t, httpapi.Options{NoKeys: true, SecretKeys: sealing}, requestsMadeFromTheDocument, invoices(nil))
}

func requestsMadeFromTheDocument(t *testing.T, d *testAPI) {
	const seed = 7
	for _, id := range []string{"i1", "i2"} {
		d.want(d.ask("POST", "lifecycles/invoice/entities", wire.NewEntity{ID: new(id)}, nil), 201, "")
	}
	m := &maker{d.spec(), rand.New(rand.NewPCG(seed, seed))}
	t.Logf("seed %d", seed)
	var seen []string
	answered := make(map[string]int)
	for range testlevel.Pick(10, 30, 2000) {
		for _, r := range d.api.Routes() {
			req := m.request(r, seen)
			text := fmt.Sprintf("%s %s %v", req.Method, req.URL, req.Header)
			w := httptest.NewRecorder()
			d.api.ServeHTTP(w, req)
			if why := m.judge(r, w); why != "" {
				t.Errorf("%.600s: %s", text, why)
			}
			if w.Code < 300 {
				answered[r.ID]++
				seen = append(seen, idsIn(w.Body.Bytes())...)
				seen = seen[max(0, len(seen)-40):]
			}
		}
		if t.Failed() {
			return
		}
	}
	for _, r := range d.api.Routes() {
		if answered[r.ID] == 0 {
			t.Logf("no request for %s succeeded", r.ID)
		}
	}
}

var ids = regexp.MustCompile(`"(?:id|token|operation)":"([^"]+)"`)

func idsIn(text []byte) (all []string) {
	for _, m := range ids.FindAllSubmatch(text, 3) {
		all = append(all, string(m[1]))
	}
	return all
}

// judge returns what is wrong with a response, or "".
func (m *maker) judge(r httpapi.Route, w *httptest.ResponseRecorder) string {
	told := fmt.Sprintf("%d %.400s", w.Code, w.Body)
	if w.Code >= 500 {
		return told
	}
	responses := m.operation(r)["responses"].(object)
	declared, ok := responses[strconv.Itoa(w.Code)].(object)
	if !ok {
		return "the status is not declared: " + told
	}
	declared = m.follow(declared)
	content, _ := declared["content"].(object)
	media, ok := content[w.Header().Get("Content-Type")].(object)
	if !ok {
		if w.Body.Len() > 0 {
			return "the content type is not declared: " + told
		}
		return ""
	}
	var doc any
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		return told
	}
	if why := m.fits(doc, media["schema"].(object), ""); why != "" {
		return why + ": " + told
	}
	if o, ok := doc.(object); ok && w.Code >= 400 && (o["code"] == "" || o["code"] == string(fault.Internal)) {
		return told
	}
	return ""
}

// TestGoodAnswersFitTheDocument verifies that successful responses match the document, for routes
// that random requests do not get right.
func TestGoodAnswersFitTheDocument(t *testing.T) {
	b := new(bank)
	d := newTestAPI(t, holdfasttest.Open(t, invoices(nil), b.payments()), httpapi.Options{NoKeys: true, SecretKeys: sealing})
	m := &maker{d.spec(), nil}
	good := func(id, path string, body, into any) {
		t.Helper()
		i := slices.IndexFunc(d.api.Routes(), func(r httpapi.Route) bool { return r.ID == id })
		r := d.api.Routes()[i]
		resp := d.ask(r.Method, path, body, into)
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
		w.WriteHeader(resp.StatusCode)
		w.WriteString(textOf(resp))
		if why := m.judge(r, w); why != "" || w.Code >= 300 {
			t.Errorf("%s: got status %d %s %s", id, w.Code, textOf(resp), why)
		}
	}
	var claim wire.Claimed
	for _, name := range []string{"i", "j", "k"} {
		good("createEntity", "lifecycles/invoice/entities", wire.NewEntity{ID: new(name)}, nil)
	}
	good("fireStep", "lifecycles/invoice/entities/i/steps/close", exampleBodies["fireStep"], nil)
	good("claimStep", "lifecycles/invoice/entities/j/claims", exampleBodies["claimStep"], &claim)
	for _, path := range []string{"getEntity lifecycles/invoice/entities/j", "listEntities lifecycles/invoice/entities", "readEntityHistory lifecycles/invoice/entities/i/history",
		"listRefusals lifecycles/invoice/entities/i/attempts", "listClaims claims", "listOperations operations", "listLifecycles lifecycles", "getLifecycle lifecycles/invoice"} {
		id, at, _ := strings.Cut(path, " ")
		good(id, at, nil, nil)
	}
	good("renewClaim", "claims/"+claim.Claim.Token+"/renew", nil, nil)
	good("journalEffect", "claims/"+claim.Claim.Token+"/effects", wire.EffectCall{Name: "x"}, nil)
	good("journalEffect", "claims/"+claim.Claim.Token+"/effects", wire.EffectCall{Name: "x", Result: []byte("1")}, nil)
	good("settleClaim", "claims/"+claim.Claim.Token+"/settle", exampleBodies["settleClaim"], nil)
	good("claimStep", "lifecycles/invoice/entities/k/claims", exampleBodies["claimStep"], &claim)
	good("releaseClaim", "claims/"+claim.Claim.Token+"/release", wire.Release{Reason: "no"}, nil)
	var fired wire.Fired
	good("createEntity", "lifecycles/payment/entities", wire.NewEntity{ID: new("p")}, nil)
	good("fireStep", "lifecycles/payment/entities/p/steps/pay", wire.Fire{Requester: "any", Input: []byte(`"unknown"`)}, &fired)
	good("listOperations", "operations?state=uncertain", nil, nil)
	good("listOperations", "operations?state=contradicted", nil, nil)
	good("resolveOperation", "operations/"+fired.Operation+"/resolve", wire.Resolve{Effects: []wire.KnownEffect{{Name: "charge", Happened: new(true), Result: []byte("1")}}}, nil)
	good("putReaction", "reactions/r", wire.PutReaction{Events: []string{"n"}}, nil)
	good("appendEvents", "streams/s/events", exampleBodies["appendEvents"], nil)
	var got wire.Leases
	good("claimLeases", "reactions/r/claim", exampleBodies["claimLeases"], &got)
	good("renewLease", "reactions/r/renew", wire.RenewLease{Stream: "s", Epoch: got.Leases[0].Epoch, Token: got.Leases[0].Token}, nil)
	good("listPositions", "reactions/r/streams", nil, nil)
	good("snoozeLease", "reactions/r/snooze", wire.SnoozeLease{Stream: "s", Epoch: got.Leases[0].Epoch, Token: got.Leases[0].Token, DelayMs: 1}, nil)
	testkit.Eventually(t, "the stream is due again", func() bool {
		good("claimLeases", "reactions/r/claim", exampleBodies["claimLeases"], &got)
		return len(got.Leases) == 1
	})
	good("failLease", "reactions/r/fail", wire.FailLease{Stream: "s", Epoch: got.Leases[0].Epoch, Token: got.Leases[0].Token, Message: "no"}, nil)
	good("skipReactions", "reactions/r/skip", wire.Repair{}, nil)
	good("deleteReaction", "reactions/r", nil, nil)
	good("getStream", "streams/s", nil, nil)
	good("listStreams", "streams", nil, nil)
	good("searchEvents", "events/search?stream=s", nil, nil)
	good("appendEvents", "streams/s/events", exampleBodies["appendEvents"], nil)
	good("truncateStream", "streams/s/truncate", exampleBodies["truncateStream"], nil)
	good("closeStream", "streams/s/close", exampleBodies["closeStream"], nil)
}

// TestTheOpenAPIDocumentIsValid verifies that the document is valid by the published schema of
// OpenAPI 3.1.
func TestTheOpenAPIDocumentIsValid(t *testing.T) {
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(datamodel.OpenAPI31SchemaData))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("openapi.json", schema); err != nil {
		t.Fatal(err)
	}
	valid, err := compiler.Compile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	d := newTestAPI(t, holdfasttest.Open(t), httpapi.Options{NoKeys: true})
	text, err := io.ReadAll(d.ask("GET", "openapi.json", nil, nil).Body)
	if err != nil {
		t.Fatal(err)
	}
	check := func(text []byte) error {
		t.Helper()
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return valid.Validate(doc)
	}
	if err := check(text); err != nil {
		t.Error(err)
	}
	broken := bytes.Replace(text, []byte(`"in":"path"`), []byte(`"in":"nowhere"`), 1)
	if bytes.Equal(broken, text) || check(broken) == nil {
		t.Error("an undeclared parameter is accepted as valid")
	}
}
