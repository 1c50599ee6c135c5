package store

import "strings"

// arguments writes the arguments of a text. What stands in comments, strings and quoted
// names is left, and so are casts (x::text). An argument by its position is refused.
func (e *expansion) arguments(text string) string {
	var out strings.Builder
	for text != "" {
		size := opaque(text)
		switch c := text[0]; {
		case size > 0:
		case c == ':' && word(text[1:]) > 0:
			size = 1 + word(text[1:])
			out.WriteString(e.argument(text[1:size]))
			text = text[size:]
			continue
		case (c == '$' || c == '?') && len(text) > 1 && '0' <= text[1] && text[1] <= '9':
			e.fail("%s is an argument by its position: use its name", text[:2])
			size = 2
		case word(text) > 0: // so that a word is never begun in its middle
			size = word(text)
		default:
			size = 1
		}
		out.WriteString(text[:size])
		text = text[size:]
	}
	return out.String()
}

func (e *expansion) argument(name string) string {
	with, ok := e.Arguments[name]
	if strings.HasPrefix(name, "did") && !ok { // of SQLite's scripts
		return ":" + name
	}
	if !ok {
		e.fail("its verb has no argument :%s here", name)
	}
	e.used[name] = true
	return with
}

// opaque is how long what a text begins with is, if no argument can be in it.
func opaque(text string) int {
	for _, o := range []struct{ begin, end string }{{"--", "\n"}, {"/*", "*/"}, {"'", "'"}, {`"`, `"`}} {
		if rest, found := strings.CutPrefix(text, o.begin); found {
			inside, _, closed := strings.Cut(rest, o.end)
			if !closed {
				return len(text)
			}
			return len(o.begin) + len(inside) + len(o.end)
		}
	}
	if strings.HasPrefix(text, "::") {
		return 2
	}
	return 0
}

// word is how long the name is that a text begins with.
func word(text string) (n int) {
	for n < len(text) && (text[n] == '_' || 'a' <= text[n] && text[n] <= 'z' || 'A' <= text[n] && text[n] <= 'Z' || n > 0 && '0' <= text[n] && text[n] <= '9') {
		n++
	}
	return n
}
