package diagram

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// graph returns a graph of n nodes, of which the first is the initial one.
func graph(n int, edges ...Edge) *Graph {
	g := &Graph{Noun: "status", Edges: edges}
	for i := range n {
		g.Nodes = append(g.Nodes, Node{ID: fmt.Sprint(i), Kind: "status", Initial: i == 0})
	}
	return g
}

func randomGraph(random *rand.Rand) *Graph {
	g := graph(1 + random.IntN(20))
	node := func() string { return g.Nodes[random.IntN(len(g.Nodes))].ID }
	for range random.IntN(40) {
		e := Edge{From: node(), To: node(), Kind: "step", Label: strings.Repeat("k", random.IntN(40))}
		if random.IntN(4) == 0 {
			e.Kind = Revert
		}
		g.Edges = append(g.Edges, e)
	}
	return g
}

// graphs returns cycles, loops, parallel edges, unconnected nodes, and random graphs.
func graphs(t *testing.T) []*Graph {
	seed := testlevel.Seed()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	all := []*Graph{graph(0), graph(1), graph(3),
		graph(1, Edge{From: "0", To: "0", Label: "again"}, Edge{From: "0", To: "0"}),
		graph(2, Edge{From: "0", To: "1", Label: "there"}, Edge{From: "1", To: "0", Label: "back"}, Edge{From: "0", To: "1", Label: "twice"}),
		graph(3, Edge{From: "0", To: "1"}, Edge{From: "1", To: "2"}, Edge{From: "2", To: "0"}, Edge{From: "1", To: "0", Kind: Revert, Label: "revert"})}
	for range 100 {
		all = append(all, randomGraph(random))
	}
	return all
}

// TestNothingOverlaps verifies on many graphs that nodes and labels do not overlap and are inside the picture, and that no line
// crosses one that is not its own.
func TestNothingOverlaps(t *testing.T) {
	for _, g := range graphs(t) {
		l := newLayout(g)
		for _, layer := range l.layers {
			for i, b := range layer {
				if b.x < margin-0.01 || b.x+b.w > l.width-margin+0.01 || b.y-b.h/2 < margin-0.01 || b.y+b.h/2 > l.height-margin+0.01 {
					t.Fatalf("box %+v is outside of %v × %v", b, l.width, l.height)
				}
				if i > 0 && b.y-b.h/2 < layer[i-1].y+layer[i-1].h/2+rowGap-0.01 {
					t.Fatalf("box %+v overlaps %+v", b, layer[i-1])
				}
				if b.layer > 0 && b.x < l.layers[b.layer-1][0].x+l.layers[b.layer-1][0].w+columnGap-0.01 {
					t.Fatalf("box %+v begins in the previous column", b)
				}
			}
		}
		for _, r := range l.routes {
			for i, b := range r.boxes[1:] {
				if b.layer != r.boxes[i].layer+1 {
					t.Fatalf("line goes from column %d to %d, want the next column", r.boxes[i].layer, b.layer)
				}
			}
		}
	}
}

// TestTheLayout verifies that a layout has every node and edge once, that nodes do not overlap, that lines begin and end at the
// borders of their nodes and stay outside of all others, and that equal graphs have equal layouts.
func TestTheLayout(t *testing.T) {
	for _, g := range graphs(t) {
		l := g.Layout()
		if again := g.Layout(); !reflect.DeepEqual(l, again) {
			t.Fatalf("got another layout the second time\n%+v\n%+v", l, again)
		}
		if len(l.Nodes) != len(g.Nodes) || len(l.Edges) != len(g.Edges) {
			t.Fatalf("got %d nodes and %d edges, want %d and %d", len(l.Nodes), len(l.Edges), len(g.Nodes), len(g.Edges))
		}
		at := make(map[string]PlacedNode)
		for _, n := range l.Nodes {
			for _, other := range at {
				if n.X < other.X+other.Width && other.X < n.X+n.Width && n.Y < other.Y+other.Height && other.Y < n.Y+n.Height {
					t.Fatalf("node %+v overlaps %+v", n, other)
				}
			}
			at[n.ID] = n
		}
		for _, e := range l.Edges {
			if first, last := e.Points[0], e.Points[len(e.Points)-1]; !onBorder(at[e.From], first) || !onBorder(at[e.To], last) {
				t.Fatalf("edge %+v does not lead from %+v to %+v", e, at[e.From], at[e.To])
			}
			for _, n := range l.Nodes {
				if slices.ContainsFunc(e.Points, func(p Point) bool { return inside(n, p) }) {
					t.Fatalf("edge %+v crosses node %+v", e, n)
				}
			}
			if drawn := e.Label != "" && e.Kind != Revert; drawn != (e.LabelAt != nil) {
				t.Fatalf("edge %+v: got a place for the label %v, want %v", e, e.LabelAt != nil, drawn)
			}
		}
	}
}

// inside reports whether a point is inside of a node. Coordinates are rounded.
func inside(n PlacedNode, p Point) bool {
	return p.X > n.X+0.2 && p.X < n.X+n.Width-0.2 && p.Y > n.Y+0.2 && p.Y < n.Y+n.Height-0.2
}

// onBorder reports whether a point is on the left or right side of a node.
func onBorder(n PlacedNode, p Point) bool {
	near := func(a, b float64) bool { return a-b < 0.2 && b-a < 0.2 }
	return (near(p.X, n.X) || near(p.X, n.X+n.Width)) && p.Y > n.Y-0.2 && p.Y < n.Y+n.Height+0.2
}

// TestDirection verifies that edges lead to the right, except for those that close a cycle.
func TestDirection(t *testing.T) {
	l := graph(4, Edge{From: "0", To: "1"}, Edge{From: "1", To: "2"}, Edge{From: "2", To: "3"}, Edge{From: "0", To: "3"}, Edge{From: "2", To: "0"}).Layout()
	for i, n := range l.Nodes[1:] {
		if n.X <= l.Nodes[i].X {
			t.Errorf("node %s is at %v, not to the right of %s at %v", n.ID, n.X, l.Nodes[i].ID, l.Nodes[i].X)
		}
	}
	for _, e := range l.Edges {
		first, last := e.Points[0], e.Points[len(e.Points)-1]
		if right := last.X > first.X; right != (e.To != "0") {
			t.Errorf("edge from %s to %s leads from %v to %v", e.From, e.To, first.X, last.X)
		}
	}
}

// TestWork verifies that large graphs are cheap: a step of the loops takes well below a microsecond, so a layout of 100 nodes
// takes below 50 ms.
func TestWork(t *testing.T) {
	const limit = 200_000
	line, star, cycle := graph(100), graph(100), graph(100)
	random := rand.New(rand.NewPCG(1, 1))
	dense := graph(100)
	for i := range 99 {
		from, to := fmt.Sprint(i), fmt.Sprint(i+1)
		line.Edges = append(line.Edges, Edge{From: from, To: to})
		star.Edges = append(star.Edges, Edge{From: "0", To: to})
		cycle.Edges = append(cycle.Edges, Edge{From: from, To: to})
		for range 2 {
			dense.Edges = append(dense.Edges, Edge{From: fmt.Sprint(random.IntN(100)), To: fmt.Sprint(random.IntN(100))})
		}
	}
	slices.Reverse(line.Edges) // so that no pass ranks more than one node
	cycle.Edges = append(cycle.Edges, Edge{From: "99", To: "0"})
	for name, g := range map[string]*Graph{"line": line, "star": star, "cycle": cycle, "dense": dense} {
		if got := newLayout(g).work; got > limit {
			t.Errorf("%s: got %d steps, want at most %d", name, got, limit)
		}
	}
}
