package lifecycleconfig

import "github.com/holdfast-go/holdfast/internal/configdoc"

// Check reads a config and judges it. It reports all that can be found in one go;
// the config is nil if there are violations. For handlers see [Config.Lint].
func Check(data []byte, handlers map[string]Handler) (c *Config, violations, warnings []Violation) {
	return configdoc.Check(data, Parse, func(c *Config) (violations, warnings []Violation) { return c.Lint(handlers) })
}

// config is how the text of a config is spoken of. The deepest value is
// /steps/0/successful_claim_state/admin/0.
var config = configdoc.Document{
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
