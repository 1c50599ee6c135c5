package markdown

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	linkInTitle = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	noAnchor    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Anchors are the anchors of a page, in the order of its headings.
type Anchors []string

// Add returns the anchor that GitHub makes of the text of the next heading.
func (a *Anchors) Add(title string) string {
	slug := strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(linkInTitle.ReplaceAllString(strings.TrimSpace(title), "$1")), ""), " ", "-")
	anchor := slug
	for n := 1; slices.Contains(*a, anchor); n++ {
		anchor = fmt.Sprintf("%s-%d", slug, n)
	}
	*a = append(*a, anchor)
	return anchor
}
