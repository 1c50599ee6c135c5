package diagram

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

const svgStyle = `<style>
.{class}{--ink:#1f2933;--soft:#5f6b7a;--paper:#ffffff;--fill:#eef2f7;--claim:#b45309;--claim-fill:#fff7e6;font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media (prefers-color-scheme:dark){.{class}{--ink:#e6eaf0;--soft:#9aa7b6;--paper:#12171e;--fill:#222b37;--claim:#fbbf24;--claim-fill:#33290f}}
.{class} .paper{fill:var(--paper)}
.{class} text{fill:var(--ink)}
.{class} .label,.{class} .legend{fill:var(--soft);font-size:11px}
.{class} .{noun} rect{fill:var(--fill);stroke:var(--ink);stroke-width:1.5}
.{class} .claim rect{fill:var(--claim-fill);stroke:var(--claim);stroke-dasharray:5 4}
.{class} .{noun} .inner{fill:none;stroke-width:1}
.{class} .dot{fill:var(--ink)}
.{class} .line{fill:none;stroke:var(--soft);stroke-width:1.4}
.{class} .head{fill:var(--soft)}
.{class} .revert .line{stroke:var(--claim);stroke-dasharray:5 4}
.{class} .revert .head{fill:var(--claim)}
</style>
`

// SVG returns a self-contained picture: nodes from left to right, claims and reverts dashed, in a light or dark color scheme as
// the reader prefers. Each node has its id in data-status or data-step.
func (g *Graph) SVG() string {
	d := drawing{graph: g}
	if g.TooLarge() {
		d.open(480, 60, fmt.Sprintf("%d nodes and edges are too many for a picture.", g.Size))
		d.text("legend", margin, 34, "too large to draw")
		return d.close()
	}
	l := newLayout(g)
	d.open(max(l.width, 2*margin+textWidth(g.Legend)*2.2), l.height+24, g.describe())
	ports := l.ports()
	for _, r := range slices.Concat(l.routes, l.loops) {
		d.route(r, ports)
	}
	for _, b := range l.boxes {
		d.node(b)
	}
	d.text("legend", margin, l.height+8, g.Legend)
	return d.close()
}

// describe describes the picture in words.
func (g *Graph) describe() string {
	var b strings.Builder
	b.WriteString(g.Intro)
	for i := range g.Edges {
		e := &g.Edges[i]
		fmt.Fprintf(&b, " %s to %s", e.From, e.To)
		if e.Label != "" {
			b.WriteString(": " + e.Label)
		}
		b.WriteByte('.')
	}
	return b.String()
}

type drawing struct {
	strings.Builder
	graph *Graph
}

func (d *drawing) open(w, h float64, description string) {
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" class="%s" role="img" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f">`+"\n", d.graph.Class, w, h, w, h)
	fmt.Fprintf(d, "<title>%s</title>\n<desc>%s</desc>\n", escape(d.graph.Title), escape(description))
	d.WriteString(strings.NewReplacer("{class}", d.graph.Class, "{noun}", d.graph.Noun).Replace(svgStyle))
	fmt.Fprintf(d, `<rect class="paper" width="%.0f" height="%.0f"/>`+"\n", w, h)
}

func (d *drawing) close() string {
	d.WriteString("</svg>\n")
	return d.String()
}

// escape escapes a text for XML and replaces control characters, which XML does not allow.
func escape(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\ufffe' || r == '\uffff' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd")))
}

func (d *drawing) text(class string, x, y float64, s string) {
	fmt.Fprintf(d, `<text class="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, x, y, escape(configdoc.Shorten(s, 2*maxLabel+10)))
}

// node draws a node: a frame, a double frame for a final one, dashed for a claim.
func (d *drawing) node(b *box) {
	class := d.graph.Noun
	if b.node.Kind != d.graph.Noun {
		class += " " + b.node.Kind
	}
	id := escape(b.node.ID)
	top := b.y - b.h/2
	fmt.Fprintf(d, `<g class="%s" data-%s="%s"><title>%s</title>`, class, d.graph.Noun, id, id)
	fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="7"/>`, b.x, top, b.w, b.h)
	if b.node.Final {
		fmt.Fprintf(d, `<rect class="inner" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="5"/>`, b.x+3, top+3, b.w-6, b.h-6)
	}
	if b.node.Initial {
		fmt.Fprintf(d, `<circle class="dot" cx="%.1f" cy="%.1f" r="4"/>`, b.x+10, b.y)
	}
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text></g>`+"\n", b.x+b.w/2, b.y+4, escape(configdoc.Shorten(d.graph.text(b.node), maxLabel)))
}

// port is a point where a line meets a box.
type port struct {
	at   *box
	to   *box
	side int // -1 left, 1 right
}

// ports distributes the lines over each side of a node, from top to bottom in the order of their
// other ends.
func (l *layout) ports() map[port]float64 {
	y := make(map[port]float64)
	for _, b := range l.boxes {
		for side, near := range map[int][]*box{-1: b.left, 1: b.right} {
			near = slices.Clone(near)
			slices.SortStableFunc(near, func(a, b *box) int { return cmp.Compare(a.order, b.order) })
			for i, n := range near {
				y[port{b, n, side}] = b.y + portGap*(float64(i)-float64(len(near)-1)/2)
			}
		}
	}
	return y
}

// meet returns the height at which the line between two boxes meets the first.
func meet(ports map[port]float64, at, to *box, side int) float64 {
	if y, ok := ports[port{at, to, side}]; ok {
		return y
	}
	return at.y
}

// route draws an edge with its label.
func (d *drawing) route(r *route, ports map[port]float64) {
	class := "edge"
	if r.edge.Kind == Revert {
		class += " revert"
	}
	fmt.Fprintf(d, `<g class="%s"><title>%s</title>`, class, escape(r.edge.From+" → "+r.edge.To+" "+r.edge.label()))
	if r.edge.From == r.edge.To {
		d.loop(r, ports)
	} else {
		d.line(r, ports)
	}
	d.WriteString("</g>\n")
}

// line draws an edge from slot to slot: horizontal in a column, bent between two.
func (d *drawing) line(r *route, ports map[port]float64) {
	first, last := r.boxes[0], r.boxes[len(r.boxes)-1]
	x, y := first.x+first.w, meet(ports, first, r.boxes[1], 1)
	startX, startY := x, y
	var path strings.Builder
	for i, b := range r.boxes[1:] {
		toX, toY := b.x, meet(ports, b, r.boxes[i], -1)
		bend := (toX - x) / 2
		fmt.Fprintf(&path, "C%.1f %.1f %.1f %.1f %.1f %.1f", x+bend, y, toX-bend, toY, toX, toY)
		if x, y = toX, toY; b != last {
			x += b.w
			fmt.Fprintf(&path, "H%.1f", x)
		}
	}
	fmt.Fprintf(d, `<path class="line" d="M%.1f %.1f%s"/>`, startX, startY, path.String())
	if r.flip {
		d.head(startX, startY, 1)
	} else {
		d.head(x, y, -1)
	}
	for _, b := range r.boxes {
		if b.label != "" {
			fmt.Fprintf(d, `<text class="label" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, b.x+b.w/2, b.y-4, escape(configdoc.Shorten(b.label, maxLabel)))
		}
	}
}

// loop draws a line out to the label and back.
func (d *drawing) loop(r *route, ports map[port]float64) {
	b, slot := r.boxes[0], r.boxes[1]
	x, y := b.x+b.w, meet(ports, b, slot, 1)
	bend := (slot.x - x) / 2
	fmt.Fprintf(d, `<path class="line" d="M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1fV%.1fC%.1f %.1f %.1f %.1f %.1f %.1f"/>`,
		x, y-4, x+bend, y-4, slot.x-bend, slot.y-8, slot.x, slot.y-8, slot.y+4,
		slot.x-bend, slot.y+4, x+bend, y+4, x, y+4)
	d.head(x, y+4, 1)
	fmt.Fprintf(d, `<text class="label" x="%.1f" y="%.1f">%s</text>`, slot.x+6, slot.y+2, escape(configdoc.Shorten(slot.label, maxLabel)))
}

// head draws an arrowhead with its tip at x, y; dir is the side of the line.
func (d *drawing) head(x, y float64, dir float64) {
	fmt.Fprintf(d, `<path class="head" d="M%.1f %.1fl%.1f -4v8z"/>`, x, y, 8*dir)
}
