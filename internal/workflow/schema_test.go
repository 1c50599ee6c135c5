package workflow

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/configdoc"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

type schemaNode struct {
	Ref         string                 `json:"$ref"`
	Description string                 `json:"description"`
	Required    []string               `json:"required"`
	Additional  any                    `json:"additionalProperties"`
	Properties  map[string]*schemaNode `json:"properties"`
	Defs        map[string]*schemaNode `json:"$defs"`
	OneOf       []*schemaNode          `json:"oneOf"`
	Items       *schemaNode            `json:"items"`
	Const       string                 `json:"const"`
	Enum        []string               `json:"enum"`
	Maximum     float64                `json:"maximum"`
	MaxItems    int                    `json:"maxItems"`
	MaxLength   int                    `json:"maxLength"`
}

// TestSchema verifies that the schema has the same fields and required fields as the reader, and
// describes each.
func TestSchema(t *testing.T) {
	if err := strictjson.Check(Schema()); err != nil {
		t.Fatal(err)
	}
	var root schemaNode
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	sameFields(t, "definition", &root, definitionFields)
	sameFields(t, "retry", root.Defs["retry"], retryFields)
	if n := len(root.Properties["steps"].Items.OneOf); n != len(shapes) {
		t.Errorf("schema has %d step types", n)
	}
	for typ := range shapes {
		def := root.Defs[string(typ)]
		sameFields(t, string(typ), def, readers[typ])
		if def.Properties["type"].Const != string(typ) {
			t.Errorf("schema of step type %s has type %s", typ, def.Properties["type"].Const)
		}
	}
	sameLimits(t, &root)
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

// sameLimits compares the words and numbers of the schema with those of the linter.
func sameLimits(t *testing.T, root *schemaNode) {
	task, http := root.Defs["task"].Properties, root.Defs["http"].Properties
	for what, have := range map[string][2][]string{
		"safety": {task["safety"].Enum, safeties}, "onUnknown": {task["onUnknown"].Enum, onUnknown}, "method": {http["method"].Enum, methods},
	} {
		if !slices.Equal(have[0], have[1]) {
			t.Errorf("%s has values %v, the schema has %v", what, have[1], have[0])
		}
	}
	for what, have := range map[string][2]int{
		"duration":    {int(root.Defs["duration"].Maximum), int(MaxDuration.Milliseconds())},
		"attempt":     {int(root.Defs["attempt"].Maximum), int(maxAttemptTime.Milliseconds())},
		"maxAttempts": {int(root.Defs["retry"].Properties["maxAttempts"].Maximum), MaxAttempts},
		"steps":       {root.Properties["steps"].MaxItems, MaxSteps},
		"name":        {root.Properties["name"].MaxLength, maxName},
		"version":     {root.Properties["version"].MaxLength, maxVersion},
		"stepName":    {root.Defs["stepName"].MaxLength, maxStep},
		"expression":  {root.Defs["expression"].MaxLength, MaxExpression},
	} {
		if have[0] != have[1] {
			t.Errorf("limit of %s is %d, in the schema it is %d", what, have[1], have[0])
		}
	}
}

func sameFields[T any](t *testing.T, what string, s *schemaNode, f *configdoc.Fields[T]) {
	t.Helper()
	if s == nil {
		t.Fatalf("schema has no %s", what)
	}
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
func resolve(t *testing.T, s *schemaNode, known map[string]bool) {
	if s == nil {
		return
	}
	if _, ok := known[s.Ref]; s.Ref != "" && !ok {
		t.Errorf("reference %s does not exist", s.Ref)
	} else if ok {
		known[s.Ref] = true
	}
	for _, group := range [][]*schemaNode{slices.Collect(maps.Values(s.Properties)), slices.Collect(maps.Values(s.Defs)), s.OneOf, {s.Items}} {
		for _, part := range group {
			resolve(t, part, known)
		}
	}
}

// TestTheDocsHaveTheSchema verifies that the schema in the docs is the one of the package.
func TestTheDocsHaveTheSchema(t *testing.T) {
	text, err := os.ReadFile("../../docs/workflow.schema.json")
	if err != nil || string(text) != string(Schema()) {
		t.Errorf("docs/workflow.schema.json differs from internal/workflow/workflow.schema.json: copy it (%v)", err)
	}
}
