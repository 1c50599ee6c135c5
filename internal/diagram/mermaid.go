package diagram

import (
	"fmt"
	"strings"
	"unicode"
)

// Mermaid returns a Mermaid state diagram. Claims are dashed. Mermaid has no dashed edges, so reverts are labeled.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    direction LR\n")
	id := make(map[string]string)
	for i := range g.Nodes {
		n := &g.Nodes[i]
		id[n.ID] = fmt.Sprintf("s%d", i)
		fmt.Fprintf(&b, "    state \"%s\" as s%d\n", mermaidText(g.text(n)), i)
	}
	for _, n := range g.Nodes {
		if n.Initial {
			fmt.Fprintf(&b, "    [*] --> %s\n", id[n.ID])
		}
	}
	for _, e := range g.Edges {
		fmt.Fprintf(&b, "    %s --> %s", id[e.From], id[e.To])
		if e.Label != "" {
			b.WriteString(": " + mermaidText(e.Label))
		}
		b.WriteByte('\n')
	}
	var claims []string
	for _, n := range g.Nodes {
		if n.Final {
			fmt.Fprintf(&b, "    %s --> [*]\n", id[n.ID])
		}
		if n.Kind == Claim {
			claims = append(claims, id[n.ID])
		}
	}
	if len(claims) > 0 {
		fmt.Fprintf(&b, "    classDef claim stroke-dasharray:5 5\n    class %s claim\n", strings.Join(claims, ","))
	}
	return b.String()
}

// mermaidText escapes all characters except letters, digits and a few others as Mermaid's numeric
// entities, because its grammar gives most of them a meaning somewhere.
func mermaidText(s string) string {
	if s == "" {
		return "#8203;"
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" _-.,()", r):
			b.WriteRune(r)
		case unicode.IsControl(r):
			b.WriteByte(' ')
		default:
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}
