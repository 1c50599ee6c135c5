// Package diagram draws graphs: as SVG, as Mermaid, or as coordinates for a program that draws them itself. It knows neither
// lifecycles nor workflows, which describe themselves as a [Graph].
package diagram

import (
	"math"
	"slices"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// Graph is what a diagram shows.
type Graph struct {
	Title  string
	Noun   string // what a node is: status or step
	Class  string // the CSS class of the picture
	Intro  string // the first sentence of the description in words
	Legend string
	Nodes  []Node
	Edges  []Edge
	// ShowKind adds the kinds of the nodes to their labels.
	ShowKind bool
	// Size is what [MaxSize] limits: about the number of nodes and edges.
	Size int
}

// MaxSize limits a picture or a layout. Mermaid has no limit.
const MaxSize = 400

// Node is a node of a graph.
type Node struct {
	ID      string `json:"id"` // unique
	Kind    string `json:"kind"`
	Initial bool   `json:"initial"`
	Final   bool   `json:"final"`
}

// Claim is the kind of nodes that are drawn dashed, and Revert that of edges that are drawn dashed, without a label, and in the
// direction from right to left.
const (
	Claim  = "claim"
	Revert = "revert"
)

// Edge leads from one node to another. Both exist.
type Edge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Kind  string `json:"kind"`
	Label string `json:"label"`
}

// text returns the text in a node.
func (g *Graph) text(n *Node) string {
	if g.ShowKind && n.Kind != n.ID {
		return n.ID + " (" + n.Kind + ")"
	}
	return n.ID
}

// label returns the label on the line of an edge.
func (e *Edge) label() string {
	if e.Kind == Revert {
		return ""
	}
	return e.Label
}

// TooLarge reports whether a graph is too large for a picture or a layout.
func (g *Graph) TooLarge() bool { return g.Size > MaxSize }

// Layout is a graph with coordinates in pixels, from the top left corner. As JSON it is what the HTTP API returns.
type Layout struct {
	Width  float64      `json:"width"`
	Height float64      `json:"height"`
	Nodes  []PlacedNode `json:"nodes"`
	Edges  []PlacedEdge `json:"edges"`
}

// PlacedNode is a node with its place. Label is shortened to what fits.
type PlacedNode struct {
	Node
	Label  string  `json:"label"`
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	Width  float64 `json:"width"`
	Height float64 `json:"height"`
}

// PlacedEdge is an edge with its line, from the border of one node to that of the other. The label is above the point LabelAt,
// which is its middle.
type PlacedEdge struct {
	Edge
	Points  []Point `json:"points"`
	LabelAt *Point  `json:"labelAt"`
}

// Point is a point of a line.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Layout places a graph that is not [Graph.TooLarge]. Equal graphs have equal layouts.
func (g *Graph) Layout() Layout {
	l := newLayout(g)
	ports := l.ports()
	out := Layout{Width: round(l.width), Height: round(l.height), Nodes: []PlacedNode{}, Edges: []PlacedEdge{}}
	for _, b := range l.boxes {
		out.Nodes = append(out.Nodes, PlacedNode{Node: *b.node, Label: configdoc.Shorten(g.text(b.node), maxLabel),
			X: round(b.x), Y: round(b.y - b.h/2), Width: round(b.w), Height: round(b.h)})
	}
	for _, r := range slices.Concat(l.routes, l.loops) {
		e := PlacedEdge{Edge: *r.edge, Points: r.points(ports)}
		e.Label = configdoc.Shorten(e.Label, maxLabel)
		for _, b := range r.boxes {
			if b.label != "" {
				e.LabelAt = &Point{round(b.x + b.w/2), round(b.y)}
			}
		}
		out.Edges = append(out.Edges, e)
	}
	return out
}

// points returns the line of an edge in its direction: horizontal in a column, straight between two.
func (r *route) points(ports map[port]float64) (all []Point) {
	add := func(x, y float64) { all = append(all, Point{round(x), round(y)}) }
	first := r.boxes[0]
	x, y := first.x+first.w, meet(ports, first, r.boxes[1], 1)
	if r.edge.From == r.edge.To {
		slot := r.boxes[1]
		add(x, y-loopGap)
		add(slot.x, slot.y-loopGap)
		add(slot.x, slot.y+loopGap)
		add(x, y+loopGap)
		return all
	}
	add(x, y)
	for i, b := range r.boxes[1:] {
		y := meet(ports, b, r.boxes[i], -1)
		add(b.x, y)
		if b.node == nil {
			add(b.x+b.w, y)
		}
	}
	if r.flip {
		slices.Reverse(all)
	}
	return slices.Compact(all)
}

// round rounds to a tenth of a pixel, as the picture does.
func round(x float64) float64 { return math.Round(x*10) / 10 }
