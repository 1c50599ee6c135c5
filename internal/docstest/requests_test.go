package docstest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/httpapi"
	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// spec is the OpenAPI document of the server.
type spec struct {
	paths    map[string]any
	compiler *jsonschema.Compiler
	partial  *jsonschema.Compiler // of the same document, but nothing is required, because pages omit parts of responses
}

const specURL = "http://127.0.0.1/openapi.json"

func openSpec(t *testing.T) *spec {
	t.Helper()
	api := httpapi.New(httpapi.Options{NoKeys: true})
	holdfasttest.Open(t, api)
	w := httptest.NewRecorder()
	api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/api/v1/openapi.json", nil))
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(w.Body.Bytes()))
	if err != nil {
		t.Fatalf("%d %v", w.Code, err)
	}
	s := &spec{paths: doc.(map[string]any)["paths"].(map[string]any), compiler: jsonschema.NewCompiler(), partial: jsonschema.NewCompiler()}
	if err := errors.Join(s.compiler.AddResource(specURL, doc), s.partial.AddResource(specURL, optional(doc))); err != nil {
		t.Fatal(err)
	}
	return s
}

// optional returns a copy of a document in which no schema requires a property.
func optional(v any) any {
	switch v := v.(type) {
	case map[string]any:
		all := make(map[string]any)
		for name, x := range v {
			if _, list := x.([]any); name != "required" || !list {
				all[name] = optional(x)
			}
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, x := range v {
			all[i] = optional(x)
		}
		return all
	}
	return v
}

// checkResponse reports why a document is not a response to a request.
func (s *spec) checkResponse(method, target string, document json.RawMessage) error {
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	template, _ := s.route(strings.TrimPrefix(u.EscapedPath(), "/api/v1"), method)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return err
	}
	if fields, _ := value.(map[string]any); fields["code"] != nil && fields["detail"] != nil {
		return nil // an error
	}
	responses, _ := s.paths[template].(map[string]any)[strings.ToLower(method)].(map[string]any)["responses"].(map[string]any)
	err = errors.New("the route has no such response")
	for status, response := range responses {
		content, _ := response.(map[string]any)["content"].(map[string]any)
		if content["application/json"] == nil || !strings.HasPrefix(status, "2") {
			continue
		}
		schema, bad := s.partial.Compile(fmt.Sprintf("%s#/paths/%s/%s/responses/%s/content/application~1json/schema", specURL, pointer.Replace(template), strings.ToLower(method), status))
		if bad != nil {
			return bad
		}
		if err = schema.Validate(value); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%s %s: %w", method, template, err)
}

// pointer escapes a path for a JSON pointer in a URL.
var pointer = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")

// known are routes that are not in the document.
var known = []string{"/healthz", "/readyz", "/metrics", "/api/v1/openapi.json"}

// check reports why the server has no such request, with such a body.
func (s *spec) check(method, target, body string, hasBody bool) error {
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	if slices.Contains(known, u.Path) {
		return nil
	}
	template, found := s.route(strings.TrimPrefix(u.EscapedPath(), "/api/v1"), method)
	if !found {
		return fmt.Errorf("the server has no route %s %s", method, u.Path)
	}
	operation := s.paths[template].(map[string]any)[strings.ToLower(method)].(map[string]any)
	for name := range u.Query() {
		parameters, _ := operation["parameters"].([]any)
		if !slices.ContainsFunc(parameters, func(p any) bool { return p.(map[string]any)["name"] == name }) {
			return fmt.Errorf("%s %s has no parameter %q", method, template, name)
		}
	}
	return s.checkBody(template, method, operation, body, hasBody)
}

func (s *spec) checkBody(template, method string, operation map[string]any, body string, hasBody bool) error {
	request, _ := operation["requestBody"].(map[string]any)
	switch {
	case request == nil && hasBody:
		return fmt.Errorf("%s %s has no body", method, template)
	case strings.HasPrefix(body, "@") || !hasBody:
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("the body of %s %s is not JSON: %w", method, template, err)
	}
	media := "application/json"
	if _, ok := request["content"].(map[string]any)[media]; !ok {
		return nil
	}
	schema, err := s.compiler.Compile(fmt.Sprintf("%s#/paths/%s/%s/requestBody/content/%s/schema", specURL, pointer.Replace(template), strings.ToLower(method), pointer.Replace(media)))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// route returns the template of a path.
func (s *spec) route(target, method string) (template string, found bool) {
	best := -1
	for t, methods := range s.paths {
		if _, ok := methods.(map[string]any)[strings.ToLower(method)]; !ok {
			continue
		}
		pattern := "^" + regexp.MustCompile(`\\\{[^}]*\\\}`).ReplaceAllString(regexp.QuoteMeta(t), `[^/]+`) + "$"
		if literal := len(t) - 2*strings.Count(t, "{"); regexp.MustCompile(pattern).MatchString(target) && literal > best {
			template, best, found = t, literal, true
		}
	}
	return template, found
}

// server is the address of a server in the pages.
const server = "http://127.0.0.1:7070"

// installs are pages whose commands change a machine or need a release, so that no test runs them.
var installs = []string{"docs/install.md", "docs/releases.md"}

// TestRequestsExist verifies that the server has the requests in the pages, with their parameters and bodies, and that no
// command is unknown. Package cli verifies the commands of holdfast.
func TestRequestsExist(t *testing.T) {
	testlevel.OneGoroutine(t)
	pages, err := Pages(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	s := openSpec(t)
	requests, responses := 0, 0
	for _, p := range pages {
		variables := map[string]string{"U": server + "/api/v1", "HOLDFAST_URL": server}
		var asked []request // in the last block of commands
		for _, b := range p.Blocks {
			switch b.Lang {
			case "sh", "console":
				asked = nil
				commands, err := b.Commands(variables)
				if err != nil {
					t.Errorf("%s: %v", b.At(), err)
				}
				for _, words := range commands {
					r, err := s.command(b, words)
					if err != nil {
						t.Errorf("%s: %q: %v", b.At(), strings.Join(words, " "), err)
					}
					if r != nil {
						asked = append(asked, *r)
					}
				}
				requests += len(asked)
			case "json":
				all, err := documents(b.Text)
				if err != nil || len(all) != len(asked) {
					asked = nil // not the responses to these requests, or not to all of them
					continue
				}
				for i, r := range asked {
					responses++
					if err := s.checkResponse(r.method, r.target, all[i]); err != nil {
						t.Errorf("%s: response %d: %v", b.At(), i+1, err)
					}
				}
			case "":
				if typed.MatchString(b.Text) {
					t.Errorf("%s: the block has commands: begin it with ```sh or ```console", b.At())
				}
				for _, m := range requestLine.FindAllStringSubmatch(b.Text, -1) {
					requests++
					if err := s.check(m[1], m[2], "", false); err != nil {
						t.Errorf("%s: %v", b.At(), err)
					}
				}
			}
		}
	}
	if requests < 100 || responses < 15 {
		t.Errorf("only %d requests and %d responses were found", requests, responses)
	}
}

// typed matches a command.
var typed = regexp.MustCompile(`(?m)^(?:\$ .*|(?:holdfast [a-z]+ .*-|curl |call |go (?:run|test|get|mod)).*)$`)

// request is a request of a page.
type request struct{ method, target string }

var requestLine = regexp.MustCompile(`(?m)^(GET|POST|PUT|PATCH|DELETE) (/(?:api|healthz|readyz|metrics)\S*)$`)

// command checks one command of a block, and returns the request that it sends, if any.
func (s *spec) command(b Block, words []string) (*request, error) {
	unrun := b.Comments["not run"] != "" || b.Comments["run by"] != "" || slices.Contains(installs, b.Page)
	switch {
	case words[0] == "holdfast":
		return nil, nil
	case !slices.Contains([]string{"call", "curl", "put", "post"}, words[0]):
		if !unrun && b.Comments["source"] == "" {
			return nil, fmt.Errorf("no test runs it: write the reason into a comment <!-- not run: REASON --> before the block, or the test into <!-- run by: TEST -->")
		}
		return nil, nil
	}
	method, target, body, hasBody := "", "", "", false
	if words[0] == "put" || words[0] == "post" { // functions that some pages define
		method = strings.ToUpper(words[0])
	}
	for i := 1; i < len(words); i++ {
		switch w := words[i]; {
		case w == "-X":
			i++
			method = words[i]
		case w == "-d" || w == "--data-binary":
			i++
			body, hasBody = words[i], true
		case w == "-H" || w == "-c" || w == "-b" || w == "-o":
			i++
		case w == "-s" || w == "-sS" || w == "-N" || w == "-i" || w == "-f":
		case target == "" && strings.HasPrefix(w, server):
			target = strings.TrimPrefix(w, server)
		case unrun: // a request to another server
			return nil, nil
		default:
			return nil, fmt.Errorf("unknown word %q", w)
		}
	}
	if method == "" {
		method = http.MethodGet
		if hasBody {
			method = http.MethodPost
		}
	}
	return &request{method, target}, s.check(method, target, body, hasBody)
}

// elided removes what "…" stands for from JSON.
func elided(text string) string {
	var out strings.Builder
	quoted, escaped := false, false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case c == '…' && !quoted:
			c = '\x00'
		}
		out.WriteRune(c)
	}
	plain := between.ReplaceAllString(out.String(), ",")
	return strings.ReplaceAll(around.ReplaceAllString(plain, ""), "\x00", "")
}

var (
	between = regexp.MustCompile(`,\s*\x00\s*,`)
	around  = regexp.MustCompile(`,\s*\x00|\x00\s*,`)
)

// documents returns the JSON values of a block.
func documents(text string) (all []json.RawMessage, err error) {
	for d := json.NewDecoder(strings.NewReader(elided(text))); ; {
		var v json.RawMessage
		switch err := d.Decode(&v); err {
		case nil:
			all = append(all, v)
		case io.EOF:
			return all, nil
		default:
			return all, err
		}
	}
}
