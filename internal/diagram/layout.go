package diagram

import (
	"slices"
	"unicode"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// layout places nodes in columns from left to right, in the direction of the edges.
//
// Between two columns of nodes is a column for labels. Every edge has its own slot in each
// column that it crosses and is a horizontal line there; it bends only between columns.
// Therefore no line crosses a node or a label, and no two labels overlap, for any graph.
// Rejected: curves from node to node with labels in the middle, because two curves that cross
// hide each other's label.
//
// The algorithm is Sugiyama's: reverse the edges that lead back, rank by the longest path, order
// each column for few crossings, then move the slots up and down towards their neighbours.
type layout struct {
	graph  *Graph
	boxes  []*box // the nodes, in their order
	layers [][]*box
	routes []*route
	loops  []*route // edges from a node to itself

	width, height float64

	work int // counts the steps of the loops, for tests
}

// box is a node, or the slot of an edge in a column.
type box struct {
	node  *Node  // nil for a slot
	label string // a slot's label, or ""
	layer int
	order int // in its layer

	x, y, w, h  float64 // the left edge, the middle, the size
	left, right []*box  // neighbours
}

// route is an edge with the boxes that it passes through, from left to right.
type route struct {
	edge  *Edge
	boxes []*box
	flip  bool // the edge leads from right to left
}

const (
	charWidth   = 7.4 // of a letter in the font
	boxHeight   = 36.0
	labelHeight = 22.0
	slotHeight  = 12.0
	portGap     = 11.0 // between two lines at one side of a node
	rowGap      = 14.0
	columnGap   = 34.0
	margin      = 20.0
	loopGap     = 4.0 // between the middle of a loop and its lines
	maxLabel    = 36  // characters; the rest is in the title
)

// newLayout arranges a graph.
func newLayout(g *Graph) *layout {
	l := &layout{graph: g}
	byID := make(map[string]*box)
	for i := range g.Nodes {
		b := &box{node: &g.Nodes[i], h: boxHeight, w: textWidth(g.text(&g.Nodes[i])) + 36}
		l.boxes, byID[b.node.ID] = append(l.boxes, b), b
	}
	l.direct(byID)
	l.rank()
	l.slots()
	l.arrange()
	l.place()
	return l
}

// textWidth returns the width of a text as shown: cut to maxLabel, with wide letters counted twice.
func textWidth(s string) (w float64) {
	for _, r := range configdoc.Shorten(s, maxLabel) {
		w += charWidth
		if r >= 0x1100 && !unicode.Is(unicode.Mn, r) {
			w += charWidth
		}
	}
	return w
}

// direct creates routes that all lead to the right. Edges that would close a cycle are reversed. A
// revert is parallel to its claim, so it is always reversed.
func (l *layout) direct(byID map[string]*box) {
	for i := range l.graph.Edges {
		e := &l.graph.Edges[i]
		r := &route{edge: e, boxes: []*box{byID[e.From], byID[e.To]}}
		if e.Kind == Revert {
			r.reverse()
		}
		if e.From == e.To {
			l.loops = append(l.loops, r)
		} else {
			l.routes = append(l.routes, r)
		}
	}
	d := direction{out: make(map[*box][]*route), state: make(map[*box]int)}
	for _, r := range l.routes {
		d.out[r.boxes[0]] = append(d.out[r.boxes[0]], r)
	}
	for _, initial := range []bool{true, false} {
		for _, b := range l.boxes {
			if b.node.Initial == initial {
				d.visit(b)
			}
		}
	}
}

func (r *route) reverse() {
	slices.Reverse(r.boxes)
	r.flip = !r.flip
}

// direction walks the graph depth-first.
type direction struct {
	out   map[*box][]*route
	state map[*box]int // 1 on the current path, 2 finished
}

func (d *direction) visit(b *box) {
	if d.state[b] != 0 {
		return
	}
	d.state[b] = 1
	for _, r := range d.out[b] {
		if to := r.boxes[1]; d.state[to] == 1 {
			r.reverse()
		} else {
			d.visit(to)
		}
	}
	d.state[b] = 2
}

// rank places each node in the column after the last of its predecessors. Odd columns are for
// labels.
func (l *layout) rank() {
	for changed := true; changed; {
		changed = false
		for _, r := range l.routes {
			l.work++
			from, to := r.boxes[0], r.boxes[1]
			if to.layer < from.layer+2 {
				to.layer, changed = from.layer+2, true
			}
		}
	}
}

// slots gives each route a slot in every column between its ends, and puts its label into the one
// next to its start. A loop has one slot, to the right.
func (l *layout) slots() {
	for _, b := range l.boxes {
		l.enter(b)
	}
	for _, r := range l.routes {
		from, to := r.boxes[0], r.boxes[1]
		path := []*box{from}
		for layer := from.layer + 1; layer < to.layer; layer++ {
			path = append(path, &box{layer: layer, h: slotHeight})
		}
		labeled := path[1:]
		if r.flip {
			labeled[len(labeled)-1].tag(r.edge.label())
		} else {
			labeled[0].tag(r.edge.label())
		}
		for _, s := range path[1:] {
			l.enter(s)
		}
		r.boxes = append(path, to)
		connect(r.boxes)
	}
	for _, r := range l.loops {
		slot := &box{layer: r.boxes[0].layer + 1}
		slot.tag(r.edge.label())
		l.enter(slot)
		r.boxes = []*box{r.boxes[0], slot}
		connect(r.boxes)
	}
}

// tag sets the label of a slot.
func (b *box) tag(label string) {
	if label != "" {
		b.label, b.h, b.w = label, labelHeight, textWidth(label)+16
	}
}

func (l *layout) enter(b *box) {
	l.work++
	for len(l.layers) <= b.layer {
		l.layers = append(l.layers, nil)
	}
	b.order = len(l.layers[b.layer])
	l.layers[b.layer] = append(l.layers[b.layer], b)
}

func connect(path []*box) {
	for i := 1; i < len(path); i++ {
		path[i-1].right = append(path[i-1].right, path[i])
		path[i].left = append(path[i].left, path[i-1])
	}
}
