// Package docstest reads the Markdown pages of this repository, so that tests can check what the pages show: that code
// is compiled code of the repository, that commands and requests exist, that documents are valid, and that links lead
// somewhere.
//
// A block of code is preceded by an HTML comment that says where it is from:
//
//	<!-- source: run/example_test.go#start -->   a region of a file
//	<!-- source: run/example_test.go -->         a whole file; an example is shown as a program
//	<!-- not run: needs a Prometheus server -->  the commands are not known to any test, with the reason
//	<!-- part of: lifecycle -->                  a document that is a part of another
//
// A region is between the comments "[start]" and "[/start]" in the file. If it occurs several times, the parts are joined.
// Lines that end with the comment "[hide]", and those between "[hide]" and "[/hide]", are not shown.
package docstest

import (
	"errors"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/markdown"
)

// Page is one Markdown file.
type Page struct {
	Name   string // slash-separated, relative to the root of the module
	Text   string
	Blocks []Block
}

// Block is one fenced block of a page.
type Block struct {
	Page string
	Line int    // of the first fence
	Lang string // such as "go", or "" for a plain block
	Text string // with a newline at the end of each line
	// Comments has the HTML comments directly before the block, such as "not run" with its reason.
	Comments map[string]string

	begin, end int // of the text in the page
}

// At returns the place of the block, for messages.
func (b Block) At() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

var (
	fence   = regexp.MustCompile("^```([a-z]*)$")
	comment = regexp.MustCompile(`^<!-- ([a-z ]+?): (.*) -->$`)
)

// Read reads a page.
func Read(fsys fs.FS, name string) (Page, error) {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return Page{}, err
	}
	return Parse(name, string(text))
}

// Parse finds the blocks of a page.
func Parse(name, text string) (Page, error) {
	p := Page{Name: name, Text: text}
	comments := map[string]string{}
	var open *Block
	at, n := 0, 0
	for line := range strings.Lines(text) {
		at, n = at+len(line), n+1
		bare := strings.TrimRight(line, "\n")
		switch m := fence.FindStringSubmatch(bare); {
		case open != nil && bare == "```":
			open.end = at - len(line)
			open.Text = text[open.begin:open.end]
			p.Blocks = append(p.Blocks, *open)
			open, comments = nil, map[string]string{}
		case open != nil:
		case m != nil:
			open = &Block{Page: name, Line: n, Lang: m[1], Comments: comments, begin: at}
		default:
			if c := comment.FindStringSubmatch(bare); c != nil {
				comments[c[1]] = c[2]
			} else {
				comments = map[string]string{}
			}
		}
	}
	if open != nil {
		return p, fmt.Errorf("%s: the block is not closed", open.At())
	}
	return p, nil
}

// Replace returns the text of the page with other texts for some of its blocks, by their index.
func (p Page) Replace(texts map[int]string) string {
	var out strings.Builder
	last := 0
	for i, b := range p.Blocks {
		if text, ok := texts[i]; ok {
			out.WriteString(p.Text[last:b.begin] + text)
			last = b.end
		}
	}
	return out.String() + p.Text[last:]
}

// Source returns the text that the comment "source" of the block refers to. ok is false if it has none.
func (b Block) Source(fsys fs.FS) (text string, ok bool, err error) {
	from, ok := b.Comments["source"]
	if !ok {
		return "", false, nil
	}
	name, region, _ := strings.Cut(from, "#")
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return "", true, err
	}
	switch {
	case region != "":
		text, err = Region(string(src), region)
	case strings.HasSuffix(name, "_test.go") && example.Match(src):
		text, err = Program(string(src))
	default:
		text = shown(string(src))
	}
	if err == nil && path.Ext(name) == ".go" {
		text = strings.ReplaceAll(text, "\n\n\n", "\n\n")
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", from, err)
	}
	return text, true, err
}

// mark matches a line that begins or ends a region, or hides lines.
var mark = regexp.MustCompile(`(?m)^\s*(?://|#|--) \[(/?)([a-z][a-z-]*)\]\n`)

// Region returns the lines of a region, without the indentation that they share.
func Region(src, name string) (string, error) {
	var parts []string
	for rest, found := src, true; ; {
		if _, rest, found = cutMark(rest, "", name); !found {
			break
		}
		part, after, closed := cutMark(rest, "/", name)
		if !closed {
			return "", fmt.Errorf("the region %q is not closed", name)
		}
		parts, rest = append(parts, dedent(shown(part))), after
	}
	if len(parts) == 0 {
		return "", fmt.Errorf("there is no region %q", name)
	}
	return strings.Join(parts, "\n"), nil
}

// cutMark cuts the text around the first mark with the name.
func cutMark(text, slash, name string) (before, after string, found bool) {
	for _, m := range mark.FindAllStringSubmatchIndex(text, -1) {
		if text[m[2]:m[3]] == slash && text[m[4]:m[5]] == name {
			return text[:m[0]], text[m[1]:], true
		}
	}
	return text, "", false
}

// shown removes the hidden lines and all marks.
func shown(text string) string {
	for {
		before, rest, found := cutMark(text, "", "hide")
		_, after, closed := cutMark(rest, "/", "hide")
		if !found || !closed {
			break
		}
		text = before + after
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(strings.TrimRight(line, "\n"), "// [hide]") && !mark.MatchString(line) {
			out.WriteString(line)
		}
	}
	return strings.Trim(out.String(), "\n") + "\n"
}

// dedent removes the indentation that all lines share.
func dedent(text string) string {
	indent := -1
	for line := range strings.Lines(text) {
		if bare := strings.TrimLeft(line, "\t "); strings.TrimSpace(line) != "" && (indent < 0 || len(line)-len(bare) < indent) {
			indent = len(line) - len(bare)
		}
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(line[min(max(indent, 0), len(line)-1):])
	}
	return out.String()
}

var (
	header  = regexp.MustCompile(`(?s)^.*?\bpackage \w+\n`)
	example = regexp.MustCompile(`(?m)(?:^//.*\n)*^func Example\w*\(\) \{$`)
)

// Program returns a file with one example as a program.
func Program(src string) (string, error) {
	if n := len(example.FindAllString(src, -1)); n != 1 {
		return "", fmt.Errorf("the file has %d examples: one can be shown as a program", n)
	}
	text := shown(header.ReplaceAllString(src, "package main\n"))
	text = strings.ReplaceAll(example.ReplaceAllString(text, "func main() {"), "\n\n\n", "\n\n")
	formatted, err := format.Source([]byte(text))
	if err != nil {
		return "", err
	}
	return string(formatted), errors.Join(unused(text), unformatted(text, string(formatted)))
}

func unformatted(text, formatted string) error {
	if text != formatted {
		return errors.New("without its hidden lines, the program is not formatted")
	}
	return nil
}

// unused reports imports that only hidden lines use.
func unused(text string) error {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, i := range file.Imports {
		name, err := strconv.Unquote(i.Path.Value)
		if err == nil && i.Name == nil && !regexp.MustCompile(`\b`+path.Base(name)+`\.`).MatchString(text) {
			err = fmt.Errorf("without its hidden lines, the program does not use %s", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Outside returns the text of the page without its blocks of code and without code in sentences, for links.
func (p Page) Outside() string {
	texts := make(map[int]string)
	for i, b := range p.Blocks {
		texts[i] = strings.Repeat("\n", strings.Count(b.Text, "\n"))
	}
	return code.ReplaceAllStringFunc(p.Replace(texts), func(s string) string { return strings.Repeat("`", len(s)) })
}

var code = regexp.MustCompile("`[^`\n]+`")

var (
	heading = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	named   = regexp.MustCompile(`<a (?:id|name)="([^"]+)">`)
)

// Anchors returns the anchors of the page, as GitHub makes them of its headings.
func (p Page) Anchors() []string {
	texts := make(map[int]string)
	for i := range p.Blocks {
		texts[i] = ""
	}
	text := p.Replace(texts)
	var all markdown.Anchors
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		all.Add(m[1])
	}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// Link is a link or an image of a page.
type Link struct {
	Line   int
	Target string
}

var link = regexp.MustCompile(`\]\(([^()\s]+(?:\([^()]*\))?)(?: "[^"]*")?\)|(?:src|href)="([^"]+)"`)

// Links returns the links of the page.
func (p Page) Links() []Link {
	var all []Link
	text := p.Outside()
	for _, m := range link.FindAllStringSubmatchIndex(text, -1) {
		target := ""
		if m[2] >= 0 {
			target = text[m[2]:m[3]]
		} else {
			target = text[m[4]:m[5]]
		}
		all = append(all, Link{Line: 1 + strings.Count(text[:m[0]], "\n"), Target: target})
	}
	return all
}
