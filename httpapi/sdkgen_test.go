package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/holdfast-go/holdfast/httpapi/internal/table"
)

// The SDKs' methods and types are generated from the route table ("go generate ./sdk"), because only this package can access it.

const sdkFolder = "../sdk"

var writeSDKs = flag.Bool("write-sdks", false, "write the generated files of the SDKs")

// TestSDKsAreGenerated verifies that the generated files of the SDKs match the route table.
func TestSDKsAreGenerated(t *testing.T) {
	a := new(API)
	a.addRoutes()
	doc, err := openAPIOf(a)
	if err != nil {
		t.Fatal(err)
	}
	calls := sdkCalls(a.table, doc)
	for name, want := range map[string][]byte{
		"typescript/api.js":        scriptOf(calls),
		"typescript/api.d.ts":      declarationsOf(calls, doc),
		"python/holdfast/_api.py":  pythonOf(calls),
		"python/holdfast/types.py": pythonTypesOf(doc),
	} {
		file := filepath.Join(sdkFolder, name)
		if *writeSDKs {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s does not match the route table (%v): run go generate ./sdk", file, err)
		}
	}
}

// sdkCall is a route, as an SDK calls it.
type sdkCall struct {
	id, doc, method string
	parts, args     []string
	body, out       *jsonSchema // nil for none
	optional        bool        // the body may be omitted
	document        bool        // the body may also be YAML
	query           []sdkQuery
	list, paged     bool
	item            *jsonSchema
	conditional     bool
	// repeat says how the request is repeated: "read", "key" if that needs an idempotency key, "task" if the epoch of the task
	// is enough, or "never".
	repeat string
}

type sdkQuery struct {
	name, doc string
	schema    *jsonSchema
	time      bool
}

func sdkCalls(routes []*route, doc openAPI) (all []sdkCall) {
	for _, r := range routes {
		op := doc.Paths["/"+r.Path][strings.ToLower(r.Method)]
		c := sdkCall{id: r.ID, doc: sdkDoc(r), method: r.Method, parts: strings.Split(r.Path, "/"), conditional: r.Conditional, repeat: repeatOf(r)}
		for _, arg := range pathArguments(r) {
			c.args = append(c.args, arg.name)
		}
		if r.In.Body >= 0 {
			c.body, c.optional, c.document = op.RequestBody.Content["application/json"].Schema, r.In.Optional, r.In.YAML()
		}
		for _, p := range op.Parameters {
			if p.In == "query" && (r.ID != "listAudit" || p.Name != "format") { // an SDK reads pages
				c.query = append(c.query, sdkQuery{p.Name, p.Description, p.Schema, strings.Contains(p.Description, "RFC 3339")})
			}
		}
		if r.Out.Kind() != reflect.Pointer {
			c.out = op.Responses[strconv.Itoa(r.Status)].Content["application/json"].Schema
			_, c.list = r.Out.FieldByName("Items")
			c.list = c.list && r.Method == http.MethodGet
		}
		if c.list {
			_, c.paged = r.In.Query["cursor"]
			c.item = doc.Components.Schemas[typeOf(c.out)].Properties["items"].Items
		}
		all = append(all, c)
	}
	return all
}

func repeatOf(r *route) string {
	switch {
	case r.Method == http.MethodGet:
		return "read"
	case r.Idempotency == table.Never:
		return "never"
	case r.Idempotency == table.UnderLease && strings.HasPrefix(r.Path, "tasks/"):
		return "task"
	}
	return "key"
}

// sdkDoc returns the doc of a method. It drops the alternative of following a stream, which is another method.
func sdkDoc(r *route) string {
	s := r.Summary
	if r.Stream {
		s, _, _ = strings.Cut(s, ", or ")
		s = strings.TrimSuffix(s, ".") + "."
	}
	return strings.TrimSpace(s + " " + strings.ReplaceAll(r.More, "[Key]", "idempotency key"))
}

// path returns the parts of the path as expressions: literals, and the names of arguments.
func (c sdkCall) path(name func(string) string) string {
	args := c.args
	parts := make([]string, len(c.parts))
	for i, p := range c.parts {
		if parts[i] = strconv.Quote(p); p[0] == '{' {
			parts[i], args = name(args[0]), args[1:]
		}
	}
	return strings.Join(parts, ", ")
}

func same(s string) string { return s }

// scriptOf generates the methods in JavaScript.
func scriptOf(calls []sdkCall) []byte {
	var b bytes.Buffer
	b.WriteString("// Generated from the route table by \"go generate ./sdk\". Do not edit.\n\n/** The routes of the API. Client sends the requests. */\nexport class Api {\n")
	for _, c := range calls {
		args := slices.Clone(c.args)
		fields := []string{fmt.Sprintf("method: %q", c.method), "path: [" + c.path(same) + "]"}
		if c.body != nil {
			args, fields = append(args, "body"), append(fields, "body")
		}
		if c.document {
			fields = append(fields, "yaml: true")
		}
		args = append(args, "options")
		if len(c.query) > 0 {
			var names []string
			for _, q := range c.query {
				names = append(names, strconv.Quote(q.name))
			}
			fields = append(fields, "query: ["+strings.Join(names, ", ")+"]")
		}
		fields = append(fields, fmt.Sprintf("repeat: %q", c.repeat))
		list, send := strings.Join(args, ", "), "this.send({ "+strings.Join(fields, ", ")+" }, options)"
		switch {
		case c.paged:
			page := strings.Join(append(slices.Clone(c.args), "{ ...options, ...page }"), ", ")
			fmt.Fprintf(&b, "  %s(%s) {\n    return this.pages((page) => this.%sPage(%s));\n  }\n\n", c.id, list, c.id, page)
			fmt.Fprintf(&b, "  %sPage(%s) {\n    return %s;\n  }\n\n", c.id, list, send)
		case c.list:
			fmt.Fprintf(&b, "  %s(%s) {\n    return this.pages(() => %s);\n  }\n\n", c.id, list, send)
		default:
			fmt.Fprintf(&b, "  %s(%s) {\n    return %s;\n  }\n\n", c.id, list, send)
		}
	}
	return append(bytes.TrimSuffix(b.Bytes(), []byte("\n")), "}\n"...)
}

// declarationsOf generates the types in TypeScript.
func declarationsOf(calls []sdkCall, doc openAPI) []byte {
	var b bytes.Buffer
	b.WriteString("// Generated from the route table by \"go generate ./sdk\". Do not edit.\n\nimport type { CallOptions, Conditions, KeyOptions } from \"./client.js\";\n")
	writeInterfaces(&b, doc.Components.Schemas)
	b.WriteString("\n/** The routes of the API. Client sends the requests. */\nexport class Api {\n")
	for _, c := range calls {
		var args []string
		for _, arg := range c.args {
			args = append(args, arg+": string")
		}
		if c.body != nil {
			typ, may := typeOf(c.body), ""
			if c.document {
				typ += " | string"
			}
			if c.optional {
				may = "?"
			}
			args = append(args, "body"+may+": "+typ)
		}
		args = append(args, "options?: "+c.options())
		list, result := strings.Join(args, ", "), "void"
		if c.out != nil {
			result = typeOf(c.out)
		}
		if c.list {
			fmt.Fprintf(&b, "%s  %s(%s): AsyncGenerator<%s, void, undefined>;\n", jsDoc("  ", c.doc), c.id, list, typeOf(c.item))
		}
		switch {
		case c.paged:
			fmt.Fprintf(&b, "%s  %sPage(%s): Promise<%s>;\n", jsDoc("  ", "One page: "+c.doc), c.id, list, result)
		case !c.list:
			fmt.Fprintf(&b, "%s  %s(%s): Promise<%s>;\n", jsDoc("  ", c.doc), c.id, list, result)
		}
	}
	b.WriteString("}\n")
	return b.Bytes()
}

// options returns the type of the options of a call.
func (c sdkCall) options() string {
	all := []string{"CallOptions"}
	if c.repeat == "key" {
		all[0] = "KeyOptions"
	}
	if c.conditional {
		all = append(all, "Conditions")
	}
	if len(c.query) > 0 {
		var fields []string
		for _, q := range c.query {
			typ := typeOf(q.schema)
			if q.time {
				typ += " | Date"
			}
			fields = append(fields, jsDoc("    ", q.doc)+"    "+q.name+"?: "+typ+";\n")
		}
		all = append(all, "{\n"+strings.Join(fields, "")+"  }")
	}
	return strings.Join(all, " & ")
}

func jsDoc(indent, text string) string {
	if text == "" {
		return ""
	}
	return indent + "/** " + strings.ReplaceAll(text, "*/", "* /") + " */\n"
}

// pythonOf generates the methods in Python.
func pythonOf(calls []sdkCall) []byte {
	var b bytes.Buffer
	b.WriteString(`# Generated from the route table by "go generate ./sdk". Do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Any, Dict, Iterator

from . import types as t


class Api:
    """The routes of the API. Client sends the requests."""

    _send: Any
    _pages: Any
`)
	for _, c := range calls {
		c.python(&b)
	}
	return b.Bytes()
}

// python writes the methods of a call.
func (c sdkCall) python(b *bytes.Buffer) {
	args, options := []string{"self"}, []string{}
	request := []string{strconv.Quote(c.method), "[" + c.path(snake) + "]"}
	for _, arg := range c.args {
		args = append(args, snake(arg)+": str")
	}
	if c.body != nil {
		typ, otherwise := pythonType(c.body, "t."), ""
		if c.document {
			typ += " | str"
		}
		if c.optional {
			typ, otherwise = typ+" | None", " = None"
		}
		args, request = append(args, "body: "+typ+otherwise), append(request, "body=body")
	}
	if c.optional {
		request = append(request, "optional=True")
	}
	if c.document {
		request = append(request, "yaml=True")
	}
	var query, page []string
	for _, q := range c.query {
		typ := pythonType(q.schema, "t.")
		if q.time {
			typ += " | datetime"
		}
		options = append(options, fmt.Sprintf("%s: %s | None = None", snake(q.name), typ))
		query = append(query, fmt.Sprintf("%q: %s", q.name, snake(q.name)))
		if q.name != "cursor" {
			page = append(page, snake(q.name)+"="+snake(q.name))
		}
	}
	if query != nil {
		request = append(request, "query={"+strings.Join(query, ", ")+"}")
	}
	if c.repeat == "key" {
		options, request = append(options, "idempotency_key: str | None = None"), append(request, "key=idempotency_key")
	}
	if c.conditional {
		options = append(options, "if_match: int | str | None = None", "if_none_match: int | str | None = None")
		request = append(request, "if_match=if_match", "if_none_match=if_none_match")
	}
	request = append(request, fmt.Sprintf("repeat=%q", c.repeat))
	if len(options) > 0 {
		args = append(append(args, "*"), options...)
	}
	result := "None"
	if c.out != nil {
		result = pythonType(c.out, "t.")
	}
	name, list, send := snake(c.id), strings.Join(args, ", "), "self._send("+strings.Join(request, ", ")+")"
	if c.list {
		of := pythonType(c.item, "t.")
		from := "self._pages(lambda _: " + send + ")"
		if c.paged {
			var given []string
			for _, arg := range c.args {
				given = append(given, snake(arg))
			}
			given = append(append(given, page...), "cursor=at")
			from = fmt.Sprintf("self._pages(lambda at: self.%s_page(%s), cursor)", name, strings.Join(given, ", "))
		}
		fmt.Fprintf(b, "\n    def %s(%s) -> Iterator[%s]:\n        %s\n        return %s\n", name, list, of, pyDoc(c.doc), from)
		if !c.paged {
			return
		}
		name, c.doc = name+"_page", "One page: "+c.doc
	}
	fmt.Fprintf(b, "\n    def %s(%s) -> %s:\n        %s\n        return %s\n", name, list, result, pyDoc(c.doc), send)
}

func pyDoc(text string) string {
	return `"""` + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), `"""`, `'''`) + `"""`
}

// pythonWords are keywords of Python that are names in the API.
var pythonWords = []string{"from", "in", "is", "not", "with", "as", "global", "class", "import", "pass", "return", "if", "else"}

// snake returns the Python name of an argument: runId is run_id, from is from_.
func snake(name string) string {
	if slices.Contains(pythonWords, name) {
		return name + "_"
	}
	var b strings.Builder
	for _, c := range name {
		if unicode.IsUpper(c) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// pythonTypesOf generates the types in Python. They are dictionaries at run time.
func pythonTypesOf(doc openAPI) []byte {
	var b bytes.Buffer
	b.WriteString("# Generated from the route table by \"go generate ./sdk\". Do not edit.\n\n\"\"\"The JSON objects of the API, for type checkers. At run time they are dictionaries.\"\"\"\n\n" +
		"from __future__ import annotations\n\nfrom typing import Any, Dict, List, Literal, TypedDict, Union\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		s := doc.Components.Schemas[name]
		if s.Properties == nil {
			fmt.Fprintf(&b, "\n%s = %s\n", name, pythonType(s, ""))
			continue
		}
		var must, may []string
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			if slices.Contains(s.Required, field) {
				must = append(must, field)
			} else {
				may = append(may, field)
			}
		}
		base := "TypedDict"
		if len(must) > 0 && len(may) > 0 {
			base = "_" + name
			writeTypedDict(&b, base, "TypedDict", "", s, must)
			must = nil
		}
		if len(may) > 0 {
			writeTypedDict(&b, name, base, "total=False", s, may)
		} else {
			writeTypedDict(&b, name, base, "", s, must)
		}
	}
	return b.Bytes()
}

// writeTypedDict writes a class, or a call if a field is a keyword of Python.
func writeTypedDict(b *bytes.Buffer, name, base, total string, s *jsonSchema, fields []string) {
	if slices.ContainsFunc(fields, func(f string) bool { return snake(f) == f+"_" }) {
		var all []string
		for _, f := range fields {
			all = append(all, fmt.Sprintf("%q: %q", f, pythonType(s.Properties[f], "")))
		}
		if total != "" {
			total = ", " + total
		}
		functional := name
		if base != "TypedDict" {
			functional = "_" + name + "Optional"
		}
		fmt.Fprintf(b, "\n%s = TypedDict(%q, {%s}%s)\n", functional, functional, strings.Join(all, ", "), total)
		if base != "TypedDict" {
			fmt.Fprintf(b, "\n\nclass %s(%s, %s):\n    pass\n", name, base, functional)
		}
		return
	}
	if total != "" {
		base += ", " + total
	}
	fmt.Fprintf(b, "\n\nclass %s(%s):\n", name, base)
	for _, f := range fields {
		if doc := s.Properties[f].Description; doc != "" {
			fmt.Fprintf(b, "    # %s\n", doc)
		}
		fmt.Fprintf(b, "    %s: %s\n", f, pythonType(s.Properties[f], ""))
	}
	if len(fields) == 0 {
		b.WriteString("    pass\n")
	}
}

// pythonType returns the Python type of a schema.
func pythonType(s *jsonSchema, module string) string {
	switch {
	case s == nil:
		return "Any"
	case s.Ref != "":
		return module + s.Ref[strings.LastIndex(s.Ref, "/")+1:]
	case len(s.Enum) > 0:
		var all []string
		for _, v := range s.Enum {
			if v == nil {
				all = append(all, "None")
				continue
			}
			text, _ := json.Marshal(v) // came from JSON
			all = append(all, string(text))
		}
		return "Literal[" + strings.Join(all, ", ") + "]"
	case len(s.AnyOf) > 0:
		var all []string
		for _, one := range s.AnyOf {
			all = append(all, pythonType(one, module))
		}
		return "Union[" + strings.Join(all, ", ") + "]"
	}
	kinds, _ := s.Type.([]any)
	if one, ok := s.Type.(string); ok {
		kinds = []any{one}
	}
	var all []string
	for _, kind := range kinds {
		switch kind {
		case "string":
			all = append(all, "str")
		case "boolean":
			all = append(all, "bool")
		case "null":
			all = append(all, "None")
		case "integer":
			all = append(all, "int")
		case "number":
			all = append(all, "float")
		case "array":
			all = append(all, "List["+pythonType(s.Items, module)+"]")
		case "object":
			value := new(jsonSchema)
			if json.Unmarshal(s.AdditionalProperties, value) != nil {
				value = nil // true or absent
			}
			all = append(all, "Dict[str, "+pythonType(value, module)+"]")
		}
	}
	switch len(all) {
	case 0:
		return "Any"
	case 1:
		return all[0]
	}
	return "Union[" + strings.Join(all, ", ") + "]"
}
