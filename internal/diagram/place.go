package diagram

import (
	"cmp"
	"slices"
)

// arrange orders the boxes of each column by the positions of their neighbours, in alternating
// directions, and uses the order with the fewest crossings.
func (l *layout) arrange() {
	best, fewest := l.orders(), l.crossings()
	for sweep := range 12 {
		for i := range l.layers {
			layer, side := l.layers[i], func(b *box) []*box { return b.left }
			if sweep%2 == 1 {
				layer, side = l.layers[len(l.layers)-1-i], func(b *box) []*box { return b.right }
			}
			sortLayer(layer, side)
			l.work += len(layer)
		}
		if n := l.crossings(); n < fewest {
			best, fewest = l.orders(), n
		}
	}
	for i, layer := range best {
		l.layers[i] = layer
		renumber(layer)
	}
}

func (l *layout) orders() (all [][]*box) {
	for _, layer := range l.layers {
		all = append(all, slices.Clone(layer))
	}
	return all
}

func sortLayer(layer []*box, side func(*box) []*box) {
	slices.SortStableFunc(layer, func(a, b *box) int { return cmp.Compare(center(a, side), center(b, side)) })
	renumber(layer)
}

func renumber(layer []*box) {
	for i, b := range layer {
		b.order = i
	}
}

// center returns the mean order of a box's neighbours, or its own order if it has none.
func center(b *box, side func(*box) []*box) float64 {
	near := side(b)
	if len(near) == 0 {
		return float64(b.order)
	}
	sum := 0
	for _, n := range near {
		sum += n.order
	}
	return float64(sum) / float64(len(near))
}

// crossings counts the pairs of lines that cross.
func (l *layout) crossings() (n int) {
	for i, layer := range l.layers {
		if i+1 == len(l.layers) {
			break
		}
		ends := make(tree, len(l.layers[i+1])+1) // of the lines to the right, from top to bottom
		lines := 0
		for _, b := range layer {
			own := make([]int, 0, len(b.right))
			for _, to := range b.right {
				own = append(own, to.order)
			}
			slices.Sort(own)
			for _, to := range own {
				n += lines - ends.upTo(to)
			}
			for _, to := range own {
				ends.add(to)
			}
			lines += len(own)
		}
		l.work += lines
	}
	return n
}

// tree counts numbers from 0 (a Fenwick tree). Counting the pairs of lines one by one took most of the time of large
// diagrams.
type tree []int

func (t tree) add(x int) {
	for i := x + 1; i < len(t); i += i & -i {
		t[i]++
	}
}

// upTo returns how many numbers up to x were added.
func (t tree) upTo(x int) (n int) {
	for i := x + 1; i > 0; i -= i & -i {
		n += t[i]
	}
	return n
}

// place sets the coordinates.
func (l *layout) place() {
	for _, b := range l.boxes {
		b.h = max(b.h, portGap*float64(1+max(len(b.left), len(b.right))))
	}
	l.columns()
	for _, layer := range l.layers {
		placeLayer(layer, func(b *box) float64 { return b.y })
	}
	for sweep := range 24 {
		for i := range l.layers {
			layer := l.layers[i]
			if sweep%2 == 1 {
				layer = l.layers[len(l.layers)-1-i]
			}
			placeLayer(layer, wish)
			l.work += len(layer)
		}
	}
	l.frame()
}

// columns sets the horizontal position of each layer.
func (l *layout) columns() {
	x := margin
	for _, layer := range l.layers {
		width := 0.0
		for _, b := range layer {
			width = max(width, b.w)
		}
		for _, b := range layer {
			b.x, b.w = x, width // otherwise a line would bend inside the column
		}
		x += width + columnGap
	}
	l.width = x - columnGap + margin
}

// wish returns the preferred height of a box: the mean of its neighbours.
func wish(b *box) float64 {
	near := slices.Concat(b.left, b.right)
	if len(near) == 0 {
		return b.y
	}
	sum := 0.0
	for _, n := range near {
		sum += n.y
	}
	return sum / float64(len(near))
}

// placeLayer places the boxes of a column in order, without overlap, and as near to their preferred
// heights as possible. Boxes with conflicting preferences form a group at the mean height.
func placeLayer(layer []*box, wish func(*box) float64) {
	type group struct {
		sum  float64
		size int
	}
	var groups []group
	offsets := make([]float64, len(layer))
	for i, b := range layer {
		if i > 0 {
			offsets[i] = offsets[i-1] + (layer[i-1].h+b.h)/2 + rowGap
		}
		g := group{wish(b) - offsets[i], 1}
		for n := len(groups); n > 0 && groups[n-1].sum/float64(groups[n-1].size) > g.sum/float64(g.size); n-- {
			g.sum += groups[n-1].sum
			g.size += groups[n-1].size
			groups = groups[:n-1]
		}
		groups = append(groups, g)
	}
	i := 0
	for _, g := range groups {
		for range g.size {
			layer[i].y = g.sum/float64(g.size) + offsets[i]
			i++
		}
	}
}

// frame moves all boxes into the picture and sets its size.
func (l *layout) frame() {
	top, bottom := 0.0, 0.0
	first := true
	for _, layer := range l.layers {
		for _, b := range layer {
			if up, down := b.y-b.h/2, b.y+b.h/2; first {
				top, bottom, first = up, down, false
			} else {
				top, bottom = min(top, up), max(bottom, down)
			}
		}
	}
	for _, layer := range l.layers {
		for _, b := range layer {
			b.y += margin - top
		}
	}
	l.height = bottom - top + 2*margin
}
