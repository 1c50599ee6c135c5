package workflow

import (
	"cmp"

	"github.com/holdfast-go/holdfast/internal/diagram"
)

// Diagram returns the steps and their order. A failure that ends the run has no edge.
func (d *Definition) Diagram() *diagram.Graph {
	g := &diagram.Graph{Title: d.ID(), Noun: "step", Class: "hf-workflow", ShowKind: true, Legend: "dot: first step · double frame: end of the run"}
	ended := false
	for i := range d.Steps {
		s := &d.Steps[i]
		g.Nodes = append(g.Nodes, diagram.Node{ID: s.Name, Kind: string(s.Type), Initial: i == 0})
		for _, w := range d.exits(i) {
			if d.Find(w.To) < 0 { // the linter refuses other names
				w.To, ended = End, true
			}
			g.Edges = append(g.Edges, w)
		}
	}
	if len(d.Steps) > 0 {
		g.Intro = "Runs begin with " + d.Steps[0].Name + "."
	}
	if ended {
		g.Nodes = append(g.Nodes, diagram.Node{ID: End, Kind: End, Final: true})
	}
	g.Size = len(g.Nodes) + len(g.Edges)
	return g
}

// exits returns the edges out of a step.
func (d *Definition) exits(i int) (all []diagram.Edge) {
	s := &d.Steps[i]
	add := func(kind, label, to string) {
		if to != "" {
			all = append(all, diagram.Edge{From: s.Name, To: to, Kind: kind, Label: label})
		}
	}
	if s.Type == Condition {
		add("then", "then", cmp.Or(s.Then, d.After(i)))
		add("else", "else", cmp.Or(s.Else, d.After(i)))
	} else {
		add("next", "", d.After(i))
	}
	add("failure", "failed", s.OnFailure)
	add("timeout", "timed out", s.OnTimeout)
	add("reject", "rejected", s.OnReject)
	return all
}
