package workflow

import (
	_ "embed"
	"slices"
)

//go:embed workflow.schema.json
var schema []byte

// Schema returns the JSON Schema (2020-12) of a definition, for editors. It covers only the form;
// [Definition.Lint] checks the rest.
func Schema() []byte { return slices.Clone(schema) }
