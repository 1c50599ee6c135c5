package markdown

import (
	"html"
	"regexp"
	"strings"
)

var (
	linked     = regexp.MustCompile(`^\[([^\[\]]*)\]\(([^()\s]+(?:\([^()]*\))?)\)`)
	auto       = regexp.MustCompile(`^<(https?://[^ <>]+)>`)
	noText     = regexp.MustCompile(`^(?:<[a-zA-Z/!?]|&#?[a-zA-Z0-9]+;|~~|https?://|\]\[|\[\^|!\[)`)
	ticks      = regexp.MustCompile("^`+")
	underlined = regexp.MustCompile(`(?:^|[\s(])_\w`)
	escaped    = regexp.MustCompile("^\\\\[!-/:-@\\[-`{-~]")
)

// inline renders the text of a block, in which newlines are spaces. plain is the same without markup.
func (r *renderer) inline(n int, text string) (shown, plain string) {
	var out, bare strings.Builder
	say := func(s string) { out.WriteString(html.EscapeString(s)); bare.WriteString(s) }
	for len(text) > 0 {
		rest := text[1:]
		switch {
		case text[0] == '`':
			mark := ticks.FindString(text)
			code, after, ok := strings.Cut(text[len(mark):], mark)
			if !ok {
				r.fail(n, "code is not closed: %q", text)
			}
			if strings.HasPrefix(code, " ") && strings.HasSuffix(code, " ") && strings.TrimSpace(code) != "" {
				code = code[1 : len(code)-1]
			}
			out.WriteString("<code>")
			say(strings.ReplaceAll(code, "\n", " "))
			out.WriteString("</code>")
			rest = after
		case escaped.MatchString(text):
			say(text[1:2])
			rest = text[2:]
		case auto.MatchString(text):
			m := auto.FindStringSubmatch(text)
			r.link(&out, m[1], html.EscapeString(m[1]), m[1])
			bare.WriteString(m[1])
			rest = text[len(m[0]):]
		case text[0] == '!' && linked.MatchString(rest), linked.MatchString(text):
			m := linked.FindStringSubmatch(strings.TrimPrefix(text, "!"))
			inner, words := r.inline(n, m[1])
			r.link(&out, m[2], inner, words)
			bare.WriteString(words)
			rest = strings.TrimPrefix(text, "!")[len(m[0]):]
		case strings.HasPrefix(text, "**"):
			rest = r.emphasis(n, text, "**", "strong", &out, &bare)
		case text[0] == '*':
			rest = r.emphasis(n, text, "*", "em", &out, &bare)
		case noText.MatchString(text):
			r.fail(n, "this is not in the part of Markdown that pages use: %.40q", text)
			say(text[:1])
		default:
			end := 1
			for end < len(text) && !strings.ContainsRune("`\\<!*[&~h]", rune(text[end])) {
				end++
			}
			if underlined.MatchString(text[:end]) {
				r.fail(n, "write emphasis with *: %.40q", text)
			}
			say(strings.ReplaceAll(text[:end], "\n", " "))
			rest = text[end:]
		}
		text = rest
	}
	return out.String(), bare.String()
}

// emphasis renders the text up to the mark that closes it, and returns what follows.
func (r *renderer) emphasis(n int, text, mark, tag string, out, bare *strings.Builder) string {
	inner, rest, ok := strings.Cut(text[len(mark):], mark)
	if !ok || inner == "" || strings.TrimSpace(inner) != inner || strings.Count(inner, "`")%2 != 0 {
		r.fail(n, "write \\* for a star, and close emphasis: %.40q", text)
		return text[len(mark):]
	}
	shown, plain := r.inline(n, inner)
	out.WriteString("<" + tag + ">" + shown + "</" + tag + ">")
	bare.WriteString(plain)
	return rest
}

func (r *renderer) link(out *strings.Builder, target, shown, plain string) {
	url := r.resolve(target)
	out.WriteString(`<a href="` + html.EscapeString(url) + `">` + shown + `</a>`)
	s := r.section()
	s.Links = append(s.Links, Link{Text: plain, URL: url})
}
