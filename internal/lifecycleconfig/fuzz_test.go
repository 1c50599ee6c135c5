package lifecycleconfig

import (
	"encoding/xml"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse verifies that no text causes a panic, that every violation has a position and a reason, and
// that every accepted config can be linted and drawn.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/valid/*", "testdata/broken/*"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			f.Add(readFile(f, file))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, found := Parse(data)
		if c == nil && len(found) == 0 {
			t.Fatal("got neither a config nor a violation")
		}
		for _, v := range found {
			if v.Rule == "" || v.Line < 1 || v.Column < 1 || v.Message == "" {
				t.Fatalf("got violation %+v", v)
			}
		}
		if c == nil {
			return
		}
		violations, _ := c.Lint(handlers)
		again, _ := c.Lint(handlers)
		if len(violations) != len(again) {
			t.Fatalf("first parse returned %v, second %v", violations, again)
		}
		c.Claims()
		c.Diagram().Mermaid()
		wellFormed(t, c.Diagram().SVG())
	})
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
}
