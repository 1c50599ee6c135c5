package main

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"os"
	"strings"
)

// The plot has a line for each goal that compares Holdfast with another system: a dot at the
// ratio, a bar over its 95 % interval, and a tick at the goal. The scale is logarithmic, and right
// is better: a latency is drawn as its inverse. Its colors follow the light or dark mode of the
// reader.

const (
	plotLabels = 400 // width of the labels
	plotWidth  = 440 // of the scale
	plotRow    = 26
	plotTop    = 64
)

const plotStyle = `
  svg { color-scheme: light dark; font: 13px system-ui, sans-serif; }
  .back { fill: #ffffff; } text { fill: #1f2328; } .soft { fill: #59636e; } .grid { stroke: #d1d9e0; } .one { stroke: #59636e; }
  .met { fill: #1a7f37; stroke: #1a7f37; } .unmet { fill: #bc4c00; stroke: #bc4c00; } .goal { stroke: #1f2328; stroke-width: 2; }
  @media (prefers-color-scheme: dark) {
    .back { fill: #0d1117; } text { fill: #f0f6fc; } .soft { fill: #9198a1; } .grid { stroke: #3d444d; } .one { stroke: #9198a1; }
    .met { fill: #3fb950; stroke: #3fb950; } .unmet { fill: #f0883e; stroke: #f0883e; } .goal { stroke: #f0f6fc; }
  }
`

func writeSVG(path string, all []judgement) error {
	return os.WriteFile(path, []byte(plot(all)), 0o644)
}

// plot draws the goals that were measured against another system.
func plot(all []judgement) string {
	var rows []judgement
	for _, j := range all {
		if j.Measured && j.Of != "" {
			rows = append(rows, j.speed())
		}
	}
	least, most := 0.5, 2.0
	for _, j := range rows {
		least, most = min(least, j.Low, j.Bound), max(most, j.High, j.Bound)
	}
	x := scale(least*0.9, most*1.1)
	height := plotTop + plotRow*len(rows) + 16
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="Holdfast compared with other systems">`, plotLabels+plotWidth+20, height)
	fmt.Fprintf(&b, "<style>%s</style>\n<rect class=\"back\" width=\"100%%\" height=\"100%%\"/>\n", plotStyle)
	fmt.Fprintf(&b, "<text x=\"12\" y=\"22\" font-weight=\"600\">How many times as fast Holdfast is</text>\n<text class=\"soft\" x=\"12\" y=\"42\">dot: median, bar: 95 %% interval, tick: goal; more is better</text>\n")
	for _, at := range []float64{0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100} {
		if at < least*0.9 || at > most*1.1 {
			continue
		}
		class := "grid"
		if at == 1 {
			class = "one"
		}
		fmt.Fprintf(&b, "<line class=%q x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", class, x(at), x(at), plotTop-8, height-12)
		fmt.Fprintf(&b, "<text class=\"soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g×</text>\n", x(at), plotTop-14, at)
	}
	for i, j := range rows {
		j.draw(&b, x, float64(plotTop+plotRow*i)+plotRow/2)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// speed inverts a latency, so that more is better.
func (j judgement) speed() judgement {
	if j.Measure.atMost() {
		j.Got, j.Low, j.High, j.Bound = 1/j.Got, 1/j.High, 1/j.Low, 1/j.Bound
	}
	return j
}

// scale returns the horizontal position of a ratio.
func scale(least, most float64) func(float64) float64 {
	return func(v float64) float64 {
		return plotLabels + plotWidth*(math.Log(v)-math.Log(least))/(math.Log(most)-math.Log(least))
	}
}

func (j judgement) draw(b *strings.Builder, x func(float64) float64, y float64) {
	class := "unmet"
	if j.Met {
		class = "met"
	}
	label := j.Goal + " ÷ " + j.Of
	if j.Measure == p50 {
		label += " (latency)"
	}
	fmt.Fprintf(b, "<text x=\"12\" y=\"%.1f\">%s</text><text class=\"soft\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>", y+4, html.EscapeString(label), plotLabels-16, y+4,
		fmt.Sprintf("%.2f", j.Got))
	fmt.Fprintf(b, "<line class=%q x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke-width=\"4\" stroke-opacity=\"0.45\"/>", class, x(cmp.Or(j.Low, j.Got)), x(cmp.Or(j.High, j.Got)), y, y)
	fmt.Fprintf(b, "<line class=\"goal\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", x(j.Bound), x(j.Bound), y-8, y+8)
	fmt.Fprintf(b, "<circle class=%q cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"/>\n", class, x(j.Got), y)
}
