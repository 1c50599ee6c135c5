package lifecycleconfig

import (
	"slices"
	"strings"
)

// way is what an edge is for.
type way uint8

const (
	plain  way = iota // the step, without a claim
	take              // into the claim
	done              // out of the claim, done
	failed            // where a failure leads
	revert            // back, undone
)

// edge is a way from one status to another.
type edge struct {
	from, to string
	way      way
	key      string   // the step's
	by       []string // the requesters; none if all
}

// label is what is written on an edge. A revert needs no word: its line is dashed.
func (e *edge) label() string {
	switch e.way {
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

// edges returns all ways in the order of declaration, each once: what is the same
// for several requesters is one edge. Reverts of one claim are one edge too.
func (c *Config) edges() []*edge {
	g := edges{index: make(map[edgeKey]*edge)}
	for i := range c.Steps {
		s := &c.Steps[i]
		for _, from := range s.Status {
			for _, r := range s.offered() {
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
	way           way
}

// step adds what a step is for one requester.
func (g *edges) step(s *Step, from, requester string) {
	to, _ := s.Success.For(requester)
	claim, claimed := s.Claim.For(requester)
	if claimed {
		g.add(edge{from: from, to: claim.Into, way: take, key: s.Key}, requester)
		g.add(edge{from: claim.Into, to: to, way: done, key: s.Key}, requester)
		g.add(edge{from: claim.Into, to: claim.Revert, way: revert}, requester)
		from = claim.Into
	} else {
		g.add(edge{from: from, to: to, way: plain, key: s.Key}, requester)
	}
	if to, ok := s.Failed.For(requester); ok {
		g.add(edge{from: from, to: to, way: failed, key: s.Key}, requester)
	}
}

// add enters an edge, or one more requester at the one that is there.
func (g *edges) add(e edge, requester string) {
	key := edgeKey{e.from, e.to, e.key, e.way}
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

// vertices returns the statuses in the order of declaration, and after them any
// that only steps name.
func (c *Config) vertices(all []*edge) []vertex {
	names := slices.Clone(c.StatusTypes)
	for _, e := range all {
		names = append(names, e.from, e.to)
	}
	leaves, claims := make(map[string]bool), make(map[string]bool)
	for _, e := range all {
		leaves[e.from] = leaves[e.from] || e.from != e.to
		if e.way == take {
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
