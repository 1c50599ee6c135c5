package lifecycleconfig

import (
	"cmp"
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// maxDrawn limits the statuses of a picture plus its combinations of step, status and requester.
const maxDrawn = 400

const svgStyle = `<style>
.hf-lifecycle{--ink:#1f2933;--soft:#5f6b7a;--paper:#ffffff;--fill:#eef2f7;--claim:#b45309;--claim-fill:#fff7e6;font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media (prefers-color-scheme:dark){.hf-lifecycle{--ink:#e6eaf0;--soft:#9aa7b6;--paper:#12171e;--fill:#222b37;--claim:#fbbf24;--claim-fill:#33290f}}
.hf-lifecycle .paper{fill:var(--paper)}
.hf-lifecycle text{fill:var(--ink)}
.hf-lifecycle .label,.hf-lifecycle .legend{fill:var(--soft);font-size:11px}
.hf-lifecycle .status rect{fill:var(--fill);stroke:var(--ink);stroke-width:1.5}
.hf-lifecycle .claim rect{fill:var(--claim-fill);stroke:var(--claim);stroke-dasharray:5 4}
.hf-lifecycle .status .inner{fill:none;stroke-width:1}
.hf-lifecycle .dot{fill:var(--ink)}
.hf-lifecycle .line{fill:none;stroke:var(--soft);stroke-width:1.4}
.hf-lifecycle .head{fill:var(--soft)}
.hf-lifecycle .revert .line{stroke:var(--claim);stroke-dasharray:5 4}
.hf-lifecycle .revert .head{fill:var(--claim)}
</style>
`

const legend = "dot: initial status · double frame: final status · dashed: claim status and revert"

// SVG returns the config as a self-contained picture: statuses from left to right, claim statuses
// and reverts dashed, in a light or dark color scheme as the reader prefers. Each status has its name
// in data-status.
func (c *Config) SVG() string {
	d := drawing{}
	if n := c.countCombinations() + len(c.StatusTypes); n > maxDrawn {
		d.open(c, 480, 60, fmt.Sprintf("%d statuses and steps are too many for a picture.", n))
		d.text("legend", margin, 34, "too large to draw")
		return d.close()
	}
	all := c.edges()
	l := newLayout(c.vertices(all), all)
	d.open(c, max(l.width, 2*margin+textWidth(legend)*2.2), l.height+24, describeEdges(c, all))
	ports := l.ports()
	for _, r := range slices.Concat(l.routes, l.loops) {
		d.route(r, ports)
	}
	for _, b := range l.boxes {
		d.status(b)
	}
	d.text("legend", margin, l.height+8, legend)
	return d.close()
}

// describeEdges describes the picture in words.
func describeEdges(c *Config, all []*edge) string {
	var b strings.Builder
	fmt.Fprintf(&b, "New entities are %s.", c.InitialStatus)
	for _, e := range all {
		label := e.label()
		if e.role == revert {
			label = "revert"
		}
		fmt.Fprintf(&b, " %s to %s: %s.", e.from, e.to, label)
	}
	return b.String()
}

type drawing struct{ strings.Builder }

func (d *drawing) open(c *Config, w, h float64, description string) {
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" class="hf-lifecycle" role="img" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f">`+"\n", w, h, w, h)
	fmt.Fprintf(d, "<title>%s</title>\n<desc>%s</desc>\n", escape(c.Workflow), escape(description))
	d.WriteString(svgStyle)
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

// status draws a status: a frame, a double frame for a final status, dashed for a claim status.
func (d *drawing) status(b *box) {
	class := "status"
	if b.vertex.claim {
		class += " claim"
	}
	name := escape(b.vertex.name)
	top := b.y - b.h/2
	fmt.Fprintf(d, `<g class="%s" data-status="%s"><title>%s</title>`, class, name, name)
	fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="7"/>`, b.x, top, b.w, b.h)
	if b.vertex.end {
		fmt.Fprintf(d, `<rect class="inner" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="5"/>`, b.x+3, top+3, b.w-6, b.h-6)
	}
	if b.vertex.initial {
		fmt.Fprintf(d, `<circle class="dot" cx="%.1f" cy="%.1f" r="4"/>`, b.x+10, b.y)
	}
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text></g>`+"\n", b.x+b.w/2, b.y+4, escape(configdoc.Shorten(b.vertex.name, maxLabel)))
}

// port is a point where a line meets a box.
type port struct {
	at   *box
	to   *box
	side int // -1 left, 1 right
}

// ports distributes the lines over each side of a status, from top to bottom in the order of their
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
	if r.role == revert {
		class += " revert"
	}
	fmt.Fprintf(d, `<g class="%s"><title>%s</title>`, class, escape(r.from+" → "+r.to+" "+r.label()))
	if r.from == r.to {
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
