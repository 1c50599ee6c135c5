package cli

import (
	"io"

	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
)

type diagramCommand struct {
	File   string `arg:"" help:"Lifecycle config, in JSON or YAML."`
	Format string `enum:"svg,mermaid" default:"svg" placeholder:"FORMAT" help:"Output format: svg or mermaid."`
}

// Run prints the diagram of the config.
func (c *diagramCommand) Run(p *program) error {
	data, err := readConfig(c.File)
	if err != nil {
		return err
	}
	config, violations := lifecycleconfig.Parse(data)
	if err := firstOf(c.File, violations); err != nil {
		return err
	}
	picture := config.SVG()
	if c.Format == "mermaid" {
		picture = config.Mermaid()
	}
	_, err = io.WriteString(p.stdout, picture)
	return err
}
