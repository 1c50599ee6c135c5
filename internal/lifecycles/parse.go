package lifecycles

import "github.com/holdfast-go/holdfast/internal/tree"

// Check reads a config and judges it. It reports all that can be found in one go;
// the config is nil if there are violations. For handlers see [Config.Lint].
func Check(data []byte, handlers map[string]Handler) (c *Config, violations, warnings []Violation) {
	c, violations = Parse(data)
	if c == nil {
		return nil, violations, nil
	}
	more, warnings := c.Lint(handlers)
	violations = append(violations, more...)
	if len(violations) > 0 {
		tree.InOrder(violations)
		return nil, violations, warnings
	}
	return c, nil, warnings
}

// config is how the text of a config is spoken of. The deepest value is
// /steps/0/successful_claim_state/admin/0.
var config = tree.Document{
	What:   "config",
	Needs:  "workflow, owning_module, status_types, initial_status and steps",
	Depth:  "a config needs five",
	Levels: 5,
}

// Parse reads a config: JSON if it begins with a brace, else YAML. What is
// unknown, said twice, of a wrong type or open to more than one reading is
// refused. With violations the config has what could be read, for [Config.Lint] to
// say more about it, or is nil if nothing could.
func Parse(data []byte) (*Config, []Violation) {
	r := tree.NewReader(config)
	root := r.Tree(data)
	if root == nil {
		return nil, r.Found
	}
	c := &Config{at: r.At}
	tree.Read(r, configFields, c, root, "")
	finishTable(r, c, root)
	c.refused = r.Finish(data)
	return c, r.Found
}
