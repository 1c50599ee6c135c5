package workflow

import (
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast/internal/diagram"
)

// TestDiagram verifies that a diagram has each step with its type, each way out of it, and the end.
func TestDiagram(t *testing.T) {
	d, violations := Parse([]byte(wholeYAML))
	if len(violations) > 0 {
		t.Fatal(violations)
	}
	g := d.Diagram()
	if len(g.Nodes) != len(d.Steps)+1 || g.Nodes[0] != (diagram.Node{ID: "charge", Kind: "task", Initial: true}) || g.Nodes[len(d.Steps)] != (diagram.Node{ID: "end", Kind: "end", Final: true}) {
		t.Errorf("got nodes %+v", g.Nodes)
	}
	for _, want := range []diagram.Edge{
		{From: "charge", To: "ask", Kind: "next"},
		{From: "charge", To: "refund", Kind: "failure", Label: "failed"},
		{From: "ask", To: "ship", Kind: "timeout", Label: "timed out"},
		{From: "ask", To: "refund", Kind: "reject", Label: "rejected"},
		{From: "which", To: "pause", Kind: "then", Label: "then"},
		{From: "which", To: "refund", Kind: "else", Label: "else"},
		{From: "close", To: "end", Kind: "next"},
		{From: "refund", To: "end", Kind: "next"},
	} {
		if !slices.Contains(g.Edges, want) {
			t.Errorf("got edges %+v, want also %+v", g.Edges, want)
		}
	}
	if n := len(g.Layout().Edges); n != len(g.Edges) || n != 13 {
		t.Errorf("got %d edges in the layout, want %d", n, len(g.Edges))
	}
}
