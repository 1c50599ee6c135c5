package lifecycleconfig

import (
	"encoding/xml"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the diagrams to testdata/golden")

func TestGolden(t *testing.T) {
	for _, name := range []string{"billing", "invoice"} {
		c := load(t, name+".yaml")
		for ext, got := range map[string]string{".mmd": c.Diagram().Mermaid(), ".svg": c.Diagram().SVG()} {
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
	if got := c.Diagram().Mermaid(); got != want {
		t.Errorf("got Mermaid\n%s", got)
	}
	svg := c.Diagram().SVG()
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
	if err := xml.Unmarshal([]byte(load(t, "billing.yaml").Diagram().SVG()), &svg); err != nil {
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
