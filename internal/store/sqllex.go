package store

import "strings"

// arguments replaces the named arguments of a text. It leaves comments, strings, quoted names and casts
// (x::text) alone, and refuses positional arguments.
func (e *expansion) arguments(text string) string {
	var out strings.Builder
	for text != "" {
		plain := strings.IndexAny(text, `:$?-/'"`)
		if plain < 0 {
			plain = len(text)
		}
		out.WriteString(text[:plain])
		if text = text[plain:]; text == "" {
			break
		}
		size := opaque(text)
		switch c := text[0]; {
		case size > 0:
		case c == ':' && word(text[1:]) > 0:
			size = 1 + word(text[1:])
			out.WriteString(e.argument(text[1:size]))
			text = text[size:]
			continue
		case (c == '$' || c == '?') && len(text) > 1 && '0' <= text[1] && text[1] <= '9':
			e.fail("%s is a positional argument: use a named one", text[:2])
			size = 2
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
	if strings.HasPrefix(name, "did") && !ok { // set by SQLite's scripts
		return ":" + name
	}
	if !ok {
		e.fail("the verb has no argument :%s here", name)
	}
	e.used[name] = true
	return with
}

// opaque returns the length of the comment, string, quoted name or cast operator at the start of text, or 0.
func opaque(text string) int {
	switch {
	case strings.HasPrefix(text, "--"):
		return until(text, 2, "\n")
	case strings.HasPrefix(text, "/*"):
		return until(text, 2, "*/")
	case strings.HasPrefix(text, "'"):
		return until(text, 1, "'")
	case strings.HasPrefix(text, `"`):
		return until(text, 1, `"`)
	case strings.HasPrefix(text, "::"):
		return 2
	}
	return 0
}

// until returns the length of text up to and with the first end after its first bytes, or the whole length.
func until(text string, first int, end string) int {
	if i := strings.Index(text[first:], end); i >= 0 {
		return first + i + len(end)
	}
	return len(text)
}

// word returns the length of the identifier at the start of text, or 0.
func word(text string) (n int) {
	for n < len(text) && (text[n] == '_' || 'a' <= text[n] && text[n] <= 'z' || 'A' <= text[n] && text[n] <= 'Z' || n > 0 && '0' <= text[n] && text[n] <= '9') {
		n++
	}
	return n
}
