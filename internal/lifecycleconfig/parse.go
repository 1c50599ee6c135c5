package lifecycleconfig

import "github.com/holdfast-go/holdfast/internal/configdoc"

// Check parses and lints a config. It reports everything at once; the config is nil if there are
// violations. For handlers see [Config.Lint].
func Check(data []byte, handlers map[string]Handler) (c *Config, violations, warnings []Violation) {
	return configdoc.Check(data, Parse, func(c *Config) (violations, warnings []Violation) { return c.Lint(handlers) })
}

// config describes a config for messages. The deepest value is
// /steps/0/successful_claim_state/admin/0.
var config = configdoc.Document{
	What:   "config",
	Needs:  "workflow, owning_module, status_types, initial_status and steps",
	Depth:  "a config needs at most five levels",
	Levels: 5,
}

// Parse reads a config: JSON if it begins with a brace, else YAML. It refuses unknown and duplicate
// fields, wrong types and ambiguous values. If there are violations, the config contains the values
// that could be read, so that [Config.Lint] can report more; it is nil if nothing could be read.
func Parse(data []byte) (*Config, []Violation) {
	r := configdoc.NewReader(config)
	root := r.Tree(data)
	if root == nil {
		return nil, r.Found
	}
	c := &Config{}
	configdoc.Read(r, configFields, c, root, "")
	finishTable(r, c, root)
	c.source = r.Finish(data)
	return c, r.Found
}
