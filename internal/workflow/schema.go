package workflow

import (
	_ "embed"
	"slices"
)

//go:embed workflow.schema.json
var schema []byte

// Schema returns the JSON Schema (2020-12) of a definition, for editors. It knows the form
// alone; [Definition.Lint] judges the rest.
func Schema() []byte { return slices.Clone(schema) }
