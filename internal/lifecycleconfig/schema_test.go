package lifecycleconfig

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/configdoc"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// schema is the part of JSON Schema that the config's schema uses.
type schema struct {
	Ref         string             `json:"$ref"`
	Description string             `json:"description"`
	Required    []string           `json:"required"`
	Additional  any                `json:"additionalProperties"`
	Properties  map[string]*schema `json:"properties"`
	Defs        map[string]*schema `json:"$defs"`
	OneOf       []*schema          `json:"oneOf"`
	AllOf       []*schema          `json:"allOf"`
	Items       *schema            `json:"items"`
}

// TestSchema verifies that the schema has the same fields and required fields as the reader, and
// describes each.
func TestSchema(t *testing.T) {
	data := readFile(t, "../../docs/lifecycle.schema.json")
	if err := strictjson.Check(data); err != nil {
		t.Fatal(err)
	}
	var root schema
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	same(t, "config", &root, configFields)
	same(t, "step", root.Defs["step"], stepFields)
	same(t, "table", root.Defs["table"], tableFields)
	same(t, "columns", root.Defs["columns"], columnFields)
	same(t, "after-effect", root.Defs["afterEffect"], afterEffectFields)
	same(t, "janitor", root.Defs["janitor"], janitorFields)
	known := make(map[string]bool)
	for name := range root.Defs {
		known["#/$defs/"+name] = false
	}
	resolve(t, &root, known)
	for ref, used := range known {
		if !used {
			t.Errorf("%s is not used", ref)
		}
	}
}

func same[T any](t *testing.T, what string, s *schema, f *configdoc.Fields[T]) {
	t.Helper()
	have, want := slices.Sorted(maps.Keys(s.Properties)), slices.Sorted(maps.Keys(f.Read))
	if !slices.Equal(have, want) {
		t.Errorf("schema of %s has fields %v, the parser has %v", what, have, want)
	}
	if !slices.Equal(s.Required, f.Required) {
		t.Errorf("schema of %s requires %v, the parser requires %v", what, s.Required, f.Required)
	}
	if s.Additional != false {
		t.Errorf("schema of %s allows unknown fields", what)
	}
	for name, p := range s.Properties {
		if !strings.HasSuffix(strings.TrimSpace(p.Description), ".") {
			t.Errorf("description of %s of %s does not end with a period: %q", name, what, p.Description)
		}
	}
}

// resolve reports broken references and marks the others as used.
func resolve(t *testing.T, s *schema, known map[string]bool) {
	if s == nil {
		return
	}
	if _, ok := known[s.Ref]; s.Ref != "" && !ok {
		t.Errorf("reference %s does not exist", s.Ref)
	} else if ok {
		known[s.Ref] = true
	}
	if more, ok := s.Additional.(map[string]any); ok {
		known[more["$ref"].(string)] = true
	}
	for _, group := range [][]*schema{slices.Collect(maps.Values(s.Properties)), slices.Collect(maps.Values(s.Defs)), s.OneOf, s.AllOf, {s.Items}} {
		for _, part := range group {
			resolve(t, part, known)
		}
	}
}
