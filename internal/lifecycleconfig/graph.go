package lifecycleconfig

import (
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/diagram"
)

// edgeRole says what moves an entity along an edge.
type edgeRole uint8

const (
	plain  edgeRole = iota // a step without a claim
	take                   // into the claim
	done                   // out of the claim, after a success
	failed                 // after a failure
	revert                 // out of the claim, reverted
)

// edge is a transition between two statuses.
type edge struct {
	from, to string
	role     edgeRole
	key      string   // the step's key
	by       []string // the requesters; empty means all
}

// kinds are the kinds of edges in a diagram.
var kinds = [...]string{plain: "step", take: "claim", done: "done", failed: "failed", revert: diagram.Revert}

// label returns the label of an edge.
func (e *edge) label() string {
	switch e.role {
	case done:
		return e.key + " done"
	case failed:
		return e.key + " failed"
	case revert:
		return "revert"
	}
	if len(e.by) == 0 {
		return e.key
	}
	return e.key + " (" + strings.Join(e.by, ", ") + ")"
}

// edges returns the edges in the order of declaration. Edges that differ only by requester are
// merged, and so are the reverts of one claim.
func (c *Config) edges() []*edge {
	g := edges{index: make(map[edgeKey]*edge)}
	for i := range c.Steps {
		s := &c.Steps[i]
		for _, from := range s.Status {
			for _, r := range s.Offered() {
				g.step(s, from, r)
			}
		}
	}
	return g.all
}

type edges struct {
	all   []*edge
	index map[edgeKey]*edge
}

type edgeKey struct {
	from, to, key string
	role          edgeRole
}

// step adds the edges of a step for one requester.
func (g *edges) step(s *Step, from, requester string) {
	to, _ := s.Success.For(requester)
	claim, claimed := s.Claim.For(requester)
	if claimed {
		g.add(edge{from: from, to: claim.Into, role: take, key: s.Key}, requester)
		g.add(edge{from: claim.Into, to: to, role: done, key: s.Key}, requester)
		g.add(edge{from: claim.Into, to: claim.Revert, role: revert}, requester)
		from = claim.Into
	} else {
		g.add(edge{from: from, to: to, role: plain, key: s.Key}, requester)
	}
	if to, ok := s.Failed.For(requester); ok {
		g.add(edge{from: from, to: to, role: failed, key: s.Key}, requester)
	}
}

// add adds an edge, or a requester to an existing edge.
func (g *edges) add(e edge, requester string) {
	key := edgeKey{e.from, e.to, e.key, e.role}
	known := g.index[key]
	switch {
	case known == nil:
		g.all, g.index[key] = append(g.all, &e), &e
		if requester != anyOther {
			e.by = []string{requester}
		}
	case requester == anyOther:
		known.by = nil
	case len(known.by) > 0 && !slices.Contains(known.by, requester):
		known.by = append(known.by, requester)
	}
}

// Diagram returns the statuses and the steps between them.
func (c *Config) Diagram() *diagram.Graph {
	g := &diagram.Graph{Title: c.Workflow, Noun: "status", Class: "hf-lifecycle", Intro: "New entities are " + c.InitialStatus + ".",
		Legend: "dot: initial status · double frame: final status · dashed: claim status and revert", Size: c.countCombinations() + len(c.StatusTypes)}
	all := c.edges()
	g.Nodes = c.nodes(all)
	for _, e := range all {
		g.Edges = append(g.Edges, diagram.Edge{From: e.from, To: e.to, Kind: kinds[e.role], Label: e.label()})
	}
	return g
}

// nodes returns the statuses in the order of declaration, followed by those that only steps
// name.
func (c *Config) nodes(all []*edge) []diagram.Node {
	names := slices.Clone(c.StatusTypes)
	for _, e := range all {
		names = append(names, e.from, e.to)
	}
	leaves, claims := make(map[string]bool), make(map[string]bool)
	for _, e := range all {
		leaves[e.from] = leaves[e.from] || e.from != e.to
		if e.role == take {
			claims[e.to] = true
		}
	}
	var found []diagram.Node
	seen := make(map[string]bool)
	for _, name := range names {
		if !seen[name] {
			n := diagram.Node{ID: name, Kind: "status", Initial: name == c.InitialStatus, Final: !leaves[name]}
			if claims[name] {
				n.Kind = diagram.Claim
			}
			found = append(found, n)
		}
		seen[name] = true
	}
	return found
}
