package lifecycleconfig

import (
	"fmt"
	"strings"
	"unicode"
)

// Mermaid returns the config as a Mermaid state diagram. Claim statuses are dashed. Mermaid has no
// dashed edges, so reverts are labeled.
func (c *Config) Mermaid() string {
	all := c.edges()
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n    direction LR\n")
	vertices := c.vertices(all)
	id := make(map[string]string)
	for i, v := range vertices {
		id[v.name] = fmt.Sprintf("s%d", i)
		fmt.Fprintf(&b, "    state \"%s\" as s%d\n", mermaidText(v.name), i)
	}
	for _, v := range vertices {
		if v.initial {
			fmt.Fprintf(&b, "    [*] --> %s\n", id[v.name])
		}
	}
	for _, e := range all {
		label := e.label()
		if e.role == revert {
			label = "revert"
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", id[e.from], id[e.to], mermaidText(label))
	}
	for _, v := range vertices {
		if v.end {
			fmt.Fprintf(&b, "    %s --> [*]\n", id[v.name])
		}
	}
	mermaidClaims(&b, vertices, id)
	return b.String()
}

func mermaidClaims(b *strings.Builder, vertices []vertex, id map[string]string) {
	var claims []string
	for _, v := range vertices {
		if v.claim {
			claims = append(claims, id[v.name])
		}
	}
	if len(claims) > 0 {
		fmt.Fprintf(b, "    classDef claim stroke-dasharray:5 5\n    class %s claim\n", strings.Join(claims, ","))
	}
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
