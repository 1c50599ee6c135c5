package httpapi

import (
	"cmp"
	"io"
	"net/http"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/diagram"
	"github.com/holdfast-go/holdfast/internal/lifecycleconfig"
	"github.com/holdfast-go/holdfast/internal/runengine"
	"github.com/holdfast-go/holdfast/internal/workflow"
	"github.com/holdfast-go/holdfast/wire"
)

const diagramFormats = `The format is svg (default, ""), mermaid, or layout for coordinates.`

type getLifecycleDiagramIn struct {
	Name   string `path:"name"`
	Format string `query:"format" doc:"svg (default), mermaid or layout."`
}

func getLifecycleDiagram(c *call, in *getLifecycleDiagramIn) (wire.Diagram, error) {
	return c.diagram(in.Format, "lifecycle", func() (*diagram.Graph, []lifecycleconfig.Violation, error) {
		l, err := c.lifecycle(in.Name)
		if err != nil {
			return nil, nil, err
		}
		config, violations := lifecycleconfig.Parse(l.Source())
		if len(violations) > 0 {
			return nil, violations, nil
		}
		return config.Diagram(), nil, nil
	})
}

type getDefinitionDiagramIn struct {
	ID     string `path:"id" doc:"name@version"`
	Format string `query:"format" doc:"svg (default), mermaid or layout."`
}

func getDefinitionDiagram(c *call, in *getDefinitionDiagramIn) (wire.Diagram, error) {
	return c.diagram(in.Format, "workflow definition", func() (*diagram.Graph, []workflow.Violation, error) {
		k, err := runengine.Definition(c.ctx(), c.doer(), in.ID)
		if err != nil {
			return nil, nil, err
		}
		def, violations := workflow.Parse(k.Body)
		if len(violations) > 0 {
			return nil, violations, nil
		}
		return def.Diagram(), nil, nil
	})
}

// diagram returns a diagram in a format: as JSON or, if the caller accepts images, as SVG.
func (c *call) diagram(format, noun string, load func() (*diagram.Graph, []lifecycleconfig.Violation, error)) (wire.Diagram, error) {
	d := wire.Diagram{Format: cmp.Or(format, "svg")}
	if d.Format != "svg" && d.Format != "mermaid" && d.Format != "layout" {
		return d, fault.New(fault.Validation, "format must be svg, mermaid or layout, got %q", d.Format)
	}
	g, violations, err := load()
	switch {
	case err != nil:
		return d, err
	case len(violations) > 0:
		return d, fault.New(fault.Conflict, "the %s cannot be drawn, because it is invalid: %s", noun, violations[0].Message)
	case d.Format == "mermaid":
		d.Diagram = g.Mermaid()
	case d.Format == "layout" && g.TooLarge():
		return d, fault.New(fault.Conflict, "the %s is too large to draw, with %d nodes and edges: use format=mermaid", noun, g.Size)
	case d.Format == "layout":
		d.Layout = layoutOf(g.Layout())
	default:
		d.Diagram = g.SVG()
		if c.accepts("image/svg+xml") || c.accepts("text/html") {
			c.writeImage(d.Diagram)
		}
	}
	return d, nil
}

// writeImage responds with a picture itself.
func (c *call) writeImage(svg string) {
	c.done = true
	h := c.w.Header()
	h.Set("Content-Type", "image/svg+xml")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method != http.MethodHead {
		_, _ = io.WriteString(c.w, svg) // a failed write means that the client has disconnected
	}
}

func layoutOf(l diagram.Layout) *wire.DiagramLayout {
	w := &wire.DiagramLayout{Width: l.Width, Height: l.Height, Nodes: make([]wire.DiagramNode, len(l.Nodes)), Edges: make([]wire.DiagramEdge, len(l.Edges))}
	for i, n := range l.Nodes {
		w.Nodes[i] = wire.DiagramNode{ID: n.ID, Label: n.Label, Kind: n.Kind, Initial: n.Initial, Final: n.Final, X: n.X, Y: n.Y, Width: n.Width, Height: n.Height}
	}
	for i, e := range l.Edges {
		w.Edges[i] = wire.DiagramEdge{From: e.From, To: e.To, Kind: e.Kind, Label: e.Label, LabelAt: (*wire.DiagramPoint)(e.LabelAt)}
		for _, p := range e.Points {
			w.Edges[i].Points = append(w.Edges[i].Points, wire.DiagramPoint(p))
		}
	}
	return w
}
