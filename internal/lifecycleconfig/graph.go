package lifecycleconfig

import (
	"slices"
	"strings"
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

// label returns the label of an edge. A revert has none, because its line is dashed.
func (e *edge) label() string {
	switch e.role {
	case done:
		return e.key + " done"
	case failed:
		return e.key + " failed"
	case revert:
		return ""
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

// vertex is a status in a diagram.
type vertex struct {
	name    string
	initial bool
	end     bool
	claim   bool
}

// vertices returns the statuses in the order of declaration, followed by those that only steps
// name.
func (c *Config) vertices(all []*edge) []vertex {
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
	var found []vertex
	seen := make(map[string]bool)
	for _, name := range names {
		if !seen[name] {
			found = append(found, vertex{name: name, initial: name == c.InitialStatus, end: !leaves[name], claim: claims[name]})
		}
		seen[name] = true
	}
	return found
}
