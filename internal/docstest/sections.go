package docstest

import (
	"fmt"
	"strings"
)

// A generated section of a page is between two comments:
//
//	<!-- generated: NAME -->
//	…
//	<!-- /generated -->

// Section returns the text of a generated section.
func Section(page, name string) (string, error) {
	_, rest, found := strings.Cut(page, "<!-- generated: "+name+" -->\n")
	text, _, closed := strings.Cut(rest, "<!-- /generated -->")
	if !found || !closed {
		return "", fmt.Errorf("the page has no generated section %q", name)
	}
	return text, nil
}

// ReplaceSection returns the page with another text for a generated section.
func ReplaceSection(page, name, text string) string {
	before, rest, _ := strings.Cut(page, "<!-- generated: "+name+" -->\n")
	_, after, _ := strings.Cut(rest, "<!-- /generated -->")
	return before + "<!-- generated: " + name + " -->\n" + text + "<!-- /generated -->" + after
}
