package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/holdfast-go/holdfast/httpapi/internal/table"
	"github.com/holdfast-go/holdfast/wire"
)

// The client methods that send one request each are generated from the route table ("go generate
// ./client"). The generator is here because only this package can access the table: a client links
// no engine, and the table is not exported.

const (
	clientFolder = "../client"
	clientFile   = "api_gen.go"
)

var writeClient = flag.Bool("write-client", false, "write the client's generated file")

// TestClientIsGenerated verifies that the client's generated file matches the route table.
func TestClientIsGenerated(t *testing.T) {
	hand, err := methodsByHand(os.DirFS(clientFolder))
	if err != nil {
		t.Fatal(err)
	}
	a := new(API)
	a.addRoutes()
	want, err := clientOf(a.table, hand)
	if err != nil {
		t.Fatal(err)
	}
	file := clientFolder + "/" + clientFile
	if *writeClient {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s does not match the route table (%v): run go generate ./client", file, err)
	}
}

// methodsByHand returns the hand-written methods of the client, which are not generated.
func methodsByHand(client fs.FS) (map[string]bool, error) {
	files, err := fs.Glob(client, "*.go")
	hand := make(map[string]bool)
	for _, name := range files {
		if name == clientFile || strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := fs.ReadFile(client, name)
		if err != nil {
			return nil, err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				hand[f.Name.Name] = true
			}
		}
	}
	return hand, err
}

// clientOf generates the client's file from a route table.
func clientOf(table []*route, hand map[string]bool) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`// Code generated from the route table in package httpapi. DO NOT EDIT.

package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"

	"github.com/holdfast-go/holdfast/wire"
)
`)
	for _, r := range table {
		for _, f := range methodsOf(r) {
			if !hand[f.name] {
				b.WriteString(f.String())
			}
		}
	}
	return format.Source(b.Bytes())
}

// method is one method of the client.
type method struct {
	name, doc     string
	arguments     []argument
	result, sends string
}

type argument struct{ name, typ string }

// String returns the source of the method. Consecutive arguments of the same type are merged.
func (m method) String() string {
	var b strings.Builder
	b.WriteString("\n" + comment(m.name+" "+m.doc) + "func (c *Client) " + m.name + "(")
	for i, a := range m.arguments {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.WriteString(a.name); i+1 == len(m.arguments) || m.arguments[i+1].typ != a.typ {
			b.WriteString(" " + a.typ)
		}
	}
	fmt.Fprintf(&b, ") %s {\n%s\n}\n", m.result, m.sends)
	return b.String()
}

// methodsOf returns the methods of a route. A list has an iterator and a method for its pages.
func methodsOf(r *route) []method {
	name := strings.ToUpper(r.ID[:1]) + r.ID[1:]
	ctx, page, options := argument{"ctx", "context.Context"}, argument{"p", "Page"}, argument{"o", "...Option"}
	args := slices.Concat([]argument{ctx}, pathArguments(r), bodyArgument(r), queryArguments(r))
	one := method{name, docOf(r), append(slices.Clip(args), options), "error",
		fmt.Sprintf("_, err := c.answer(ctx, %s.with(o))\nreturn err", requestOf(r))}
	if r.Out.Kind() == reflect.Pointer {
		return []method{one}
	}
	out, o := typeName(r.Out), "o"
	if r.Idempotency == table.AsHandOut {
		o = "ownKey(o)"
	}
	one.result, one.sends = "("+out+", error)", fmt.Sprintf("return do[%s](ctx, c, %s, %s)", out, requestOf(r), o)
	item, list := r.Out.FieldByName("Items")
	_, paged := r.In.Query["cursor"]
	if !list || r.Method != http.MethodGet {
		return []method{one}
	}
	all := one
	if !paged { // the only page
		all.arguments, all.result = args, "iter.Seq2["+typeName(item.Type.Elem())+", error]"
		all.sends = fmt.Sprintf("return pages(func(Page) %s { return do[%s](ctx, c, %s, nil) })", one.result, out, requestOf(r))
		return []method{all}
	}
	all.arguments, all.result = args, "iter.Seq2["+typeName(item.Type.Elem())+", error]"
	all.sends = fmt.Sprintf("return pages(func(p Page) %s { return c.%sPage(%s) })", one.result, name, names(append(slices.Clip(args), page)))
	one.name, one.doc = name+"Page", strings.Replace(one.doc, " ", " a page of ", 1)
	one.arguments = append(slices.Clip(args), page, options)
	return []method{all, one}
}

func names(all []argument) string {
	s := make([]string, len(all))
	for i, a := range all {
		s[i] = a.name
	}
	return strings.Join(s, ", ")
}

// requestOf returns the expression for the request that a method sends.
func requestOf(r *route) string {
	path, args := strings.Split(r.Path, "/"), pathArguments(r)
	for i, p := range path {
		if path[i] = fmt.Sprintf("%q", p); p[0] == '{' {
			path[i], args = args[0].name, args[1:]
		}
	}
	b, parts := "nil", strings.Join(path, ", ")
	if body := bodyArgument(r); body != nil {
		b = body[0].name
	}
	verb := r.Method[:1] + strings.ToLower(r.Method[1:])
	text := fmt.Sprintf("newRequest(http.Method%s, %s, %s)", verb, b, parts)
	if _, paged := r.In.Query["cursor"]; paged {
		text = fmt.Sprintf("list(p, %s)", parts)
	}
	for _, q := range queriesOf(r) {
		text += fmt.Sprintf(".set(%q, %s)", q.name, q.value)
	}
	return text
}

// pathArguments returns the path parameters, named as in the route. A parameter called name keeps
// that name if the method is named after its resource; otherwise it gets the name of the resource.
func pathArguments(r *route) (all []argument) {
	parts := strings.Split(r.Path, "/")
	for i, p := range parts {
		if p[0] != '{' {
			continue
		}
		name := strings.TrimSuffix(strings.Trim(p, "{}"), "Key")
		if thing := strings.TrimSuffix(parts[max(i-1, 0)], "s"); name == "name" && !strings.HasSuffix(strings.ToLower(r.ID), thing) {
			name = thing
		}
		all = append(all, argument{name, "string"})
	}
	return all
}

// bodyArgument returns the body: in, unless the field's arg tag sets another name.
func bodyArgument(r *route) []argument {
	if r.In.Body < 0 {
		return nil
	}
	f := r.In.Type.Field(r.In.Body)
	name := f.Tag.Get("arg")
	if name == "" {
		name = "in"
	}
	return []argument{{name, typeName(f.Type)}}
}

type query struct{ name, value, typ string }

// queriesOf returns the query parameters that are arguments or fields of the route's filter. A page
// is a separate argument; the wait time, the dry run and the version to read are options.
func queriesOf(r *route) (all []query) {
	for _, f := range r.In.Fields() {
		name := f.Tag.Get("query")
		if name == "" || name == "limit" || name == "cursor" || name == "at" || name == "dryRun" || f.Tag.Get("arg") == "-" || strings.HasSuffix(name, "Ms") {
			continue
		}
		q := query{name, cmp.Or(f.Tag.Get("arg"), name), f.Type.String()}
		if r.Filter != "" {
			field := cmp.Or(f.Tag.Get("arg"), strings.TrimSuffix(name, "Id"))
			q.value = filterName(r) + "." + strings.ToUpper(field[:1]) + field[1:]
		}
		all = append(all, q)
	}
	return all
}

func queryArguments(r *route) (all []argument) {
	if r.Filter != "" {
		return []argument{{filterName(r), r.Filter}}
	}
	for _, q := range queriesOf(r) {
		all = append(all, argument{q.value, q.typ})
	}
	return all
}

func filterName(r *route) string {
	if strings.HasSuffix(r.Filter, "Filter") {
		return "f"
	}
	return "in"
}

// typeName returns the name of a type of package wire in the client's source. A body that the
// handler parses itself is sent as it is.
func typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[table.Document](), reflect.TypeFor[json.RawMessage]():
		return "json.RawMessage"
	}
	return strings.ReplaceAll(t.String(), reflect.TypeFor[wire.Event]().PkgPath(), "wire")
}

// docOf returns the doc of a method: the route's summary, followed by More.
func docOf(r *route) string {
	doc := sentence(r) + " " + r.More
	if r.Idempotency == table.AsHandOut {
		doc += " Without a [Key] the client generates one, so that it can retry the call and get the same leases after a lost response."
	}
	return doc
}

// sentence converts the summary to third person: "List the keys" to "lists the keys". It drops the
// alternative of following a stream, which is another method.
func sentence(r *route) string {
	s := r.Summary
	if r.Stream {
		s, _, _ = strings.Cut(s, ", or ")
		s = strings.TrimSuffix(s, ".") + "."
	}
	first, rest, _ := strings.Cut(s, " ")
	if first == "Show" {
		return "returns " + rest
	}
	before, second, two := strings.Cut(rest, ", or ")
	for _, verb := range []string{"change", "create", "find", "validate", "wait"} {
		if after, ok := strings.CutPrefix(second, verb+" "); two && ok {
			rest = before + ", or " + verb + "s " + after
		}
	}
	return thirdPerson(strings.ToLower(first)) + " " + rest
}

func thirdPerson(verb string) string {
	switch {
	case strings.HasSuffix(verb, "ry"):
		return strings.TrimSuffix(verb, "y") + "ies"
	case strings.HasSuffix(verb, "sh"), strings.HasSuffix(verb, "ch"):
		return verb + "es"
	}
	return verb + "s"
}

// comment wraps a text to comment lines.
func comment(text string) string {
	var b strings.Builder
	width := 0
	for _, word := range strings.FieldsFunc(text, unicode.IsSpace) {
		switch {
		case width == 0:
			b.WriteString("//")
			width = 2
		case width+1+len(word) > 95:
			b.WriteString("\n//")
			width = 2
		}
		b.WriteString(" " + word)
		width += 1 + len(word)
	}
	return b.String() + "\n"
}
