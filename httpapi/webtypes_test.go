package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// The dashboard's types and the roles of its actions are generated from the route table ("go generate ./web"), because
// only this package can access it.

const typesFile = "../web/src/api.gen.ts"

var writeTypes = flag.Bool("write-types", false, "write the dashboard's generated types")

// TestDashboardTypesAreGenerated verifies that the dashboard's types match the route table.
func TestDashboardTypesAreGenerated(t *testing.T) {
	a := new(API)
	a.addRoutes()
	want, err := typesOf(a)
	if err != nil {
		t.Fatal(err)
	}
	if *writeTypes {
		if err := os.WriteFile(typesFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(typesFile); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s does not match the route table (%v): run go generate ./web", typesFile, err)
	}
}

// jsonSchema is the part of JSON Schema that the OpenAPI document uses for responses and bodies.
type jsonSchema struct {
	Ref                  string                 `json:"$ref"`
	Type                 any                    `json:"type"` // a string or a list
	Description          string                 `json:"description"`
	Properties           map[string]*jsonSchema `json:"properties"`
	Required             []string               `json:"required"`
	Items                *jsonSchema            `json:"items"`
	Enum                 []any                  `json:"enum"`
	AnyOf                []*jsonSchema          `json:"anyOf"`
	AdditionalProperties json.RawMessage        `json:"additionalProperties"`
}

// openAPI is the part of the OpenAPI document from which code is generated.
type openAPI struct {
	Components struct {
		Schemas map[string]*jsonSchema `json:"schemas"`
	} `json:"components"`
	Paths map[string]map[string]*openOperation `json:"paths"`
}

// openOperation is the entry of a route.
type openOperation struct {
	Parameters []struct {
		Name, In, Description string
		Schema                *jsonSchema
	}
	RequestBody struct{ Content openContent }
	Responses   map[string]struct{ Content openContent }
}

type openContent map[string]struct{ Schema *jsonSchema }

func openAPIOf(a *API) (doc openAPI, err error) {
	err = json.Unmarshal(a.table.OpenAPI(), &doc)
	return doc, err
}

func typesOf(a *API) ([]byte, error) {
	doc, err := openAPIOf(a)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString("// Generated from the route table by \"go generate ./web\". Do not edit.\n")
	writeInterfaces(&b, doc.Components.Schemas)
	b.WriteString("\n/** The roles that may use a route that changes something; admin may use all. */\nexport const roles: Record<string, readonly string[]> = {\n")
	var lines []string
	for _, r := range a.table {
		if r.Method == http.MethodGet {
			continue
		}
		roles := []string{`"admin"`}
		for _, role := range r.Roles {
			roles = append(roles, fmt.Sprintf("%q", role))
		}
		lines = append(lines, fmt.Sprintf("  %q: [%s],\n", r.Method+" /"+r.Path, strings.Join(roles, ", ")))
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, "") + "};\n")
	return b.Bytes(), nil
}

// writeInterfaces writes the TypeScript types of the schemas.
func writeInterfaces(b *bytes.Buffer, schemas map[string]*jsonSchema) {
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		s := schemas[name]
		if s.Properties == nil {
			fmt.Fprintf(b, "\nexport type %s = %s;\n", name, typeOf(s))
			continue
		}
		fmt.Fprintf(b, "\nexport interface %s {\n", name)
		for _, field := range slices.Sorted(maps.Keys(s.Properties)) {
			p, may := s.Properties[field], "?"
			if slices.Contains(s.Required, field) {
				may = ""
			}
			if p.Description != "" {
				fmt.Fprintf(b, "  /** %s */\n", strings.ReplaceAll(p.Description, "*/", "* /"))
			}
			fmt.Fprintf(b, "  %s%s: %s;\n", field, may, typeOf(p))
		}
		b.WriteString("}\n")
	}
}

// typeOf returns the TypeScript type of a schema.
func typeOf(s *jsonSchema) string {
	switch {
	case s == nil:
		return "unknown"
	case s.Ref != "":
		return s.Ref[strings.LastIndex(s.Ref, "/")+1:]
	case len(s.Enum) > 0:
		var all []string
		for _, v := range s.Enum {
			text, _ := json.Marshal(v) // came from JSON
			all = append(all, string(text))
		}
		return strings.Join(all, " | ")
	case len(s.AnyOf) > 0:
		var all []string
		for _, one := range s.AnyOf {
			all = append(all, typeOf(one))
		}
		return strings.Join(all, " | ")
	}
	kinds, _ := s.Type.([]any)
	if one, ok := s.Type.(string); ok {
		kinds = []any{one}
	}
	var all []string
	for _, kind := range kinds {
		switch kind {
		case "string", "boolean", "null":
			all = append(all, fmt.Sprint(kind))
		case "integer", "number":
			all = append(all, "number")
		case "array":
			all = append(all, "("+typeOf(s.Items)+")[]")
		case "object":
			value := new(jsonSchema)
			if json.Unmarshal(s.AdditionalProperties, value) != nil {
				value = nil // true or absent
			}
			all = append(all, "Record<string, "+typeOf(value)+">")
		}
	}
	if all == nil {
		return "any"
	}
	return strings.Join(all, " | ")
}
