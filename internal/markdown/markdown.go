// Package markdown renders the part of Markdown that the pages of this repository use, as GitHub does: headings, paragraphs,
// lists, tables, fenced blocks, images, links, emphasis and code. Anything else is an error, so that no page looks different
// here and there.
package markdown

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
)

// Document is a rendered page.
type Document struct {
	HTML     string
	Sections []Section
}

// Section is a heading with what is below it, up to the next heading of any level.
type Section struct {
	Level  int // 1 to 6
	Title  string
	Anchor string
	Text   string // one line for each line of code, item of a list, row of a table or paragraph
	Links  []Link
}

// Link is a link in a section.
type Link struct{ Text, URL string }

// Render renders a page. resolve returns the URL for the target of a link. Images are shown as links, with their description.
func Render(text string, resolve func(target string) string) (Document, error) {
	r := &renderer{resolve: resolve, sections: []Section{{}}}
	r.blocks(numbered(text))
	if r.sections[0].Text == "" {
		r.sections = r.sections[1:]
	}
	return Document{HTML: r.out.String(), Sections: r.sections}, r.err
}

// line is a line of a page without its newline.
type line struct {
	n    int
	text string
}

func numbered(text string) (all []line) {
	for i, s := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		all = append(all, line{i + 1, s})
	}
	return all
}

type renderer struct {
	resolve  func(string) string
	out      strings.Builder
	sections []Section
	anchors  Anchors
	err      error // the first
}

func (r *renderer) fail(n int, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("line %d: "+format, append([]any{n}, args...)...)
	}
}

func (r *renderer) section() *Section { return &r.sections[len(r.sections)-1] }

// say adds a line to the plain text of the section.
func (r *renderer) say(text string) { r.section().Text += text + "\n" }

var (
	heading   = regexp.MustCompile(`^(#{1,6}) (.+)$`)
	item      = regexp.MustCompile(`^(?:- |(\d+)\. )`)
	delimiter = regexp.MustCompile(`^\|(?: -+ \|)+$`)
	comment   = regexp.MustCompile(`^<!--.*-->$`)
	fence     = regexp.MustCompile("^```[a-z]*$")
	unknown   = regexp.MustCompile(`^(?:>|[*+] |\d+\) |~~~|\s|(?:---|===|\*\*\*|___)\s*$|<[^h])|(?:  |\\)$`)
)

// blocks renders lines that are not in a paragraph.
func (r *renderer) blocks(lines []line) {
	for len(lines) > 0 {
		l := lines[0]
		n := 1
		switch m := heading.FindStringSubmatch(l.text); {
		case l.text == "" || comment.MatchString(l.text):
		case m != nil:
			r.heading(l.n, len(m[1]), m[2])
		case fence.MatchString(l.text):
			n = r.fenced(lines)
		case strings.HasPrefix(l.text, "|"):
			n = r.table(lines)
		case item.MatchString(l.text):
			n = r.list(lines)
		default:
			n = r.paragraph(lines)
		}
		lines = lines[n:]
	}
}

func (r *renderer) heading(n, level int, text string) {
	anchor := r.anchors.Add(text)
	r.sections = append(r.sections, Section{Level: level, Anchor: anchor})
	shown, plain := r.inline(n, text)
	r.section().Title = plain
	fmt.Fprintf(&r.out, "<h%d id=\"%s\">%s <a class=\"anchor\" href=\"#%s\" aria-label=\"Link to this section\">#</a></h%d>\n", level, anchor, shown, anchor, level)
}

// fenced renders a block of code.
func (r *renderer) fenced(lines []line) int {
	end := slices.IndexFunc(lines[1:], func(l line) bool { return l.text == "```" })
	if end < 0 {
		r.fail(lines[0].n, "the block is not closed")
		return len(lines)
	}
	r.out.WriteString("<pre tabindex=\"0\"><code>")
	for _, l := range lines[1 : end+1] {
		r.out.WriteString(html.EscapeString(l.text) + "\n")
		r.say(strings.TrimSpace(l.text))
	}
	r.out.WriteString("</code></pre>\n")
	return end + 2
}

func (r *renderer) table(lines []line) int {
	if len(lines) < 2 || !delimiter.MatchString(lines[1].text) {
		r.fail(lines[0].n, "the table has no line | --- | below its head")
		return 1
	}
	width := strings.Count(lines[1].text, "|") - 1
	r.out.WriteString("<div class=\"wide\" tabindex=\"0\"><table>\n")
	n := 0
	for ; n < len(lines) && strings.HasPrefix(lines[n].text, "|"); n++ {
		if n == 1 {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(lines[n].text[1:], "|"), "|")
		if len(cells) != width {
			r.fail(lines[n].n, "the row has %d cells, want %d", len(cells), width)
		}
		tag, row := "td", []string(nil)
		if n == 0 {
			tag = "th"
			r.out.WriteString("<thead>")
		}
		r.out.WriteString("<tr>")
		for _, c := range cells {
			shown, plain := r.inline(lines[n].n, strings.TrimSpace(c))
			if tag == "th" && shown == "" {
				r.out.WriteString("<td></td>") // a head without text is none
				continue
			}
			r.out.WriteString("<" + tag + ">" + shown + "</" + tag + ">")
			if plain != "" {
				row = append(row, plain)
			}
		}
		r.out.WriteString("</tr>")
		if n == 0 {
			r.out.WriteString("</thead><tbody>")
		}
		r.out.WriteString("\n")
		r.say(strings.Join(row, " · "))
	}
	r.out.WriteString("</tbody></table></div>\n")
	return n
}

// list renders the items of a list. What is indented below an item belongs to it.
func (r *renderer) list(lines []line) (n int) {
	tag, first := "ul", item.FindStringSubmatch(lines[0].text)[1]
	if first != "" {
		tag = "ol"
	}
	start := ""
	if first != "" && first != "1" {
		start = ` start="` + first + `"`
	}
	r.out.WriteString("<" + tag + start + ">\n")
	for n < len(lines) {
		m := item.FindStringSubmatch(lines[n].text)
		if m == nil || (m[1] == "") != (first == "") {
			break
		}
		indent := len(m[0])
		body := []line{{lines[n].n, lines[n].text[indent:]}}
		for n++; n < len(lines); n++ {
			text, in := strings.CutPrefix(lines[n].text, strings.Repeat(" ", indent))
			if !in && lines[n].text != "" {
				break
			}
			body = append(body, line{lines[n].n, text})
		}
		for len(body) > 0 && body[len(body)-1].text == "" {
			body = body[:len(body)-1]
		}
		r.out.WriteString("<li>")
		if slices.ContainsFunc(body, func(l line) bool { return l.text == "" }) {
			r.blocks(body)
		} else { // the text of the item is no paragraph
			end := r.text(body, "", "")
			r.blocks(body[end:])
		}
		r.out.WriteString("</li>\n")
	}
	r.out.WriteString("</" + tag + ">\n")
	return n
}

func (r *renderer) paragraph(lines []line) int { return r.text(lines, "<p>", "</p>\n") }

// text renders the lines up to the next block.
func (r *renderer) text(lines []line, before, after string) int {
	n := 0
	var text []string
	for ; n < len(lines); n++ {
		s := lines[n].text
		m := item.FindStringSubmatch(s)
		if s == "" || heading.MatchString(s) || fence.MatchString(s) || comment.MatchString(s) || n > 0 && (strings.HasPrefix(s, "|") || m != nil && (m[1] == "" || m[1] == "1")) {
			break
		}
		if unknown.MatchString(s) {
			r.fail(lines[n].n, "this is not in the part of Markdown that pages use: %q", s)
		}
		text = append(text, s)
	}
	shown, plain := r.inline(lines[0].n, strings.Join(text, "\n"))
	r.out.WriteString(before + shown + after)
	r.say(plain)
	return n
}
