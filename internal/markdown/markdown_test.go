package markdown_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/markdown"
)

func render(text string) (markdown.Document, error) {
	return markdown.Render(text, func(target string) string { return "/to/" + target })
}

func TestRender(t *testing.T) {
	for text, want := range map[string]string{
		"one\ntwo":                               "<p>one two</p>",
		"a < b && c > d":                         "<p>a &lt; b &amp;&amp; c &gt; d</p>",
		"`<a> | *b*` and ``c`d``":                "<p><code>&lt;a&gt; | *b*</code> and <code>c`d</code></p>",
		`\*a\* \$b c_d_e`:                        "<p>*a* $b c_d_e</p>",
		"**a *b* `c`** *d*":                      "<p><strong>a <em>b</em> <code>c</code></strong> <em>d</em></p>",
		"[a `b`](c.md#d) [e]":                    `<p><a href="/to/c.md#d">a <code>b</code></a> [e]</p>`,
		`[a](b"onclick=)`:                        `<p><a href="/to/b&#34;onclick=">a</a></p>`,
		"![a](b.png)":                            `<p><a href="/to/b.png">a</a></p>`,
		"<https://a.example/b>":                  `<p><a href="/to/https://a.example/b">https://a.example/b</a></p>`,
		"<!-- a -->\n```sh\n<b>\n\n  c\n```\nd":  "<pre tabindex=\"0\"><code>&lt;b&gt;\n\n  c\n</code></pre>\n<p>d</p>",
		"a:\n- b\n  c\n- d\n\ne":                 "<p>a:</p>\n<ul>\n<li>b c</li>\n<li>d</li>\n</ul>\n<p>e</p>",
		"1. a\n   - b\n2. c":                     "<ol>\n<li>a<ul>\n<li>b</li>\n</ul>\n</li>\n<li>c</li>\n</ol>",
		"3. a\n\n   ```\n   b\n   ```":           "<ol start=\"3\">\n<li><p>a</p>\n<pre tabindex=\"0\"><code>b\n</code></pre>\n</li>\n</ol>",
		"| a | |\n| --- | --- |\n| `b` | c |\nd": "<div class=\"wide\" tabindex=\"0\"><table>\n<thead><tr><th>a</th><td></td></tr></thead><tbody>\n<tr><td><code>b</code></td><td>c</td></tr>\n</tbody></table></div>\n<p>d</p>",
	} {
		if doc, err := render(text); err != nil || strings.TrimSpace(doc.HTML) != want {
			t.Errorf("%q: error %v\n got %s\nwant %s", text, err, doc.HTML, want)
		}
	}
}

// What pages do not use is an error, so that a page cannot look different on GitHub.
func TestRenderRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, text := range []string{
		"> quote", "a\n---", "***", "* item", "+ item", "1) item", "    code", "~~~", "<b>bold</b>", "a <br> b", "a  \nb", "a\\\nb", "~~a~~", "&lt;", "_a_",
		"https://a.example", "[a][b]", "[^1]", "**open", "a * b", "`open", "```\nopen", "- a\nb\n  c", "| a |", "| a |\n| --- | --- |\n| b |", "| a |\n| --- |\n| b | c |",
	} {
		if doc, err := render(text); err == nil {
			t.Errorf("%q is rendered as %q, want an error", text, doc.HTML)
		}
	}
}

func TestSections(t *testing.T) {
	doc, err := render("# The `A`\n\none [two](b.md)\n\n## B & C: d\n\n| x | |\n| --- | --- |\n| y | z |\n\n## B & C: d\n\n- three\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []markdown.Section{
		{Level: 1, Title: "The A", Anchor: "the-a", Text: "one two\n", Links: []markdown.Link{{Text: "two", URL: "/to/b.md"}}},
		{Level: 2, Title: "B & C: d", Anchor: "b--c-d", Text: "x\ny · z\n"},
		{Level: 2, Title: "B & C: d", Anchor: "b--c-d-1", Text: "three\n"},
	}
	if len(doc.Sections) != len(want) {
		t.Fatalf("got %+v", doc.Sections)
	}
	for i, got := range doc.Sections {
		if got.Title != want[i].Title || got.Level != want[i].Level || got.Anchor != want[i].Anchor || got.Text != want[i].Text || len(got.Links) != len(want[i].Links) {
			t.Errorf("got %+v\nwant %+v", got, want[i])
		}
	}
}
