package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/holdfast-go/holdfast/internal/diagram"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/workflow"
	"github.com/holdfast-go/holdfast/wire"
)

type diagramCommand struct {
	File   string `arg:"" help:"Lifecycle config or workflow definition, in JSON or YAML."`
	Format string `enum:"svg,mermaid,layout" default:"svg" placeholder:"FORMAT" help:"Output format: svg, mermaid, or layout (coordinates as JSON)."`
}

// Run prints the diagram of a file.
func (c *diagramCommand) Run(p *program) error {
	data, err := readConfig(c.File)
	if err != nil {
		return err
	}
	g, err := graphOf(c.File, data)
	if err != nil {
		return err
	}
	switch c.Format {
	case "mermaid":
		_, err = io.WriteString(p.stdout, g.Mermaid())
	case "layout":
		if g.TooLarge() {
			return fmt.Errorf("%s is too large to draw, with %d nodes and edges: use --format mermaid", c.File, g.Size)
		}
		return showLayout(p.stdout, g.Layout())
	default: // the SVG of a graph that is too large is a picture that says so
		_, err = io.WriteString(p.stdout, g.SVG())
	}
	return err
}

// showLayout prints coordinates as a line of JSON.
func showLayout(out io.Writer, layout any) error {
	text, err := json.Marshal(layout)
	if err != nil {
		return err
	}
	return writeDocument(out, text)
}

func graphOf(file string, data []byte) (*diagram.Graph, error) {
	if isDefinition(data) {
		def, violations := workflow.Parse(data)
		if err := firstOf(file, violations); err != nil {
			return nil, err
		}
		return def.Diagram(), nil
	}
	config, violations := lifecycleconfig.Parse(data)
	if err := firstOf(file, violations); err != nil {
		return nil, err
	}
	return config.Diagram(), nil
}

// showDiagram prints a diagram that a server has drawn. With -o json, show prints the response that raw has stored.
func (d *connection) showDiagram(x wire.Diagram, err error) error {
	if err != nil || d.Output == "json" {
		return d.show(nil, err)
	}
	if x.Layout != nil {
		return showLayout(d.stdout, x.Layout)
	}
	_, err = io.WriteString(d.stdout, x.Diagram)
	return err
}
