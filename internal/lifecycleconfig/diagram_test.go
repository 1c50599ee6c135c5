package lifecycleconfig

import (
	"encoding/xml"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

var update = flag.Bool("update", false, "write the diagrams to testdata/golden")

func TestGolden(t *testing.T) {
	for _, name := range []string{"billing", "invoice"} {
		c := load(t, name+".yaml")
		for ext, got := range map[string]string{".mmd": c.Mermaid(), ".svg": c.SVG()} {
			file := "testdata/golden/" + name + ext
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := string(readFile(t, file)); got != want {
				t.Errorf("%s: got diagram\n%s\nwant\n%s\n(update it with -update)", file, got, want)
			}
		}
	}
}

// TestDiagramEscapes verifies that special characters in names are escaped.
func TestDiagramEscapes(t *testing.T) {
	b := "b"
	c := &Config{Workflow: `<w>&"`, InitialStatus: `a"; x --> y`, StatusTypes: []string{`a"; x --> y`, "b"}}
	c.Steps = []Step{{Key: "k: {<script>}\n%%", Status: []string{c.InitialStatus}, Success: Per[string]{All: &b}}}
	want := `stateDiagram-v2
    direction LR
    state "a#34;#59; x --#62; y" as s0
    state "b" as s1
    [*] --> s0
    s0 --> s1: k#58; #123;#60;script#62;#125; #37;#37;
    s1 --> [*]
`
	if got := c.Mermaid(); got != want {
		t.Errorf("got Mermaid\n%s", got)
	}
	svg := c.SVG()
	wellFormed(t, svg)
	if strings.Contains(svg, "<script") || !strings.Contains(svg, "<title>&lt;w&gt;&amp;&#34;</title>") {
		t.Errorf("got SVG\n%s", svg)
	}
}

// TestEdgesMerge verifies that one edge stands for all its requesters.
func TestEdgesMerge(t *testing.T) {
	b := "b"
	by := Step{Key: "k", Status: []string{"a"}, Success: Per[string]{By: map[string]string{"x": b, "y": b}}}
	all := Step{Key: "k", Status: []string{"a"}, Success: Per[string]{All: &b}}
	for want, steps := range map[string][]Step{"k (x, y)": {by}, "k": {by, all}} {
		if got := (&Config{Steps: steps}).edges(); len(got) != 1 || got[0].label() != want {
			t.Errorf("got %d edges, the first %q, want %q", len(got), got[0].label(), want)
		}
	}
}

// TestNothingOverlaps verifies on many graphs that statuses and labels do not overlap and are inside
// the picture, and that no line crosses one that is not its own.
func TestNothingOverlaps(t *testing.T) {
	seed := testlevel.Seed()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	configs := []*Config{load(t, "billing.yaml"), load(t, "invoice.yaml"), {}, {StatusTypes: []string{"alone"}}}
	for range 60 {
		configs = append(configs, randomConfig(random))
	}
	for _, c := range configs {
		all := c.edges()
		l := newLayout(c.vertices(all), all)
		wellFormed(t, c.SVG())
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

func randomConfig(random *rand.Rand) *Config {
	n := 1 + random.IntN(20)
	c := &Config{InitialStatus: "status_0"}
	name := func() string { return fmt.Sprintf("status_%d", random.IntN(n)) }
	for i := range n {
		c.StatusTypes = append(c.StatusTypes, fmt.Sprintf("status_%d", i))
	}
	for i := range random.IntN(30) {
		to := name()
		s := Step{ID: i, Key: strings.Repeat("k", 1+random.IntN(40)), Status: []string{name()}, Success: Per[string]{All: &to}}
		if random.IntN(3) == 0 {
			s.Claim.All = &Claim{name(), name()}
		}
		c.Steps = append(c.Steps, s)
	}
	return c
}

// TestSVGDescribesItself verifies that the picture has a description for screen readers.
func TestSVGDescribesItself(t *testing.T) {
	var svg struct {
		Role  string `xml:"role,attr"`
		Title string `xml:"title"`
		Desc  string `xml:"desc"`
		G     []struct {
			Class  string `xml:"class,attr"`
			Status string `xml:"data-status,attr"`
		} `xml:"g"`
	}
	if err := xml.Unmarshal([]byte(load(t, "billing.yaml").SVG()), &svg); err != nil {
		t.Fatal(err)
	}
	if svg.Role != "img" || svg.Title != "billing" || !strings.Contains(svg.Desc, "approved to closing: close (admin).") || !strings.Contains(svg.Desc, "closing to approved: revert.") {
		t.Errorf("got SVG %+v", svg)
	}
	classes := make(map[string]string)
	for _, g := range svg.G {
		classes[g.Status] = g.Class
	}
	if classes["closing"] != "status claim" || classes["closed"] != "status" {
		t.Errorf("got classes %v", classes)
	}
}
