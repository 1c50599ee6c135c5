package strictjson

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/fault"
)

// Text validates a short text from a caller: 1 to limit characters of valid UTF-8 without
// control characters. U+FFFD is refused as well: an earlier decoder put it in place of
// invalid bytes, and two damaged names could be equal. The field "field" of the error is
// name.
func Text(name, s string, limit int) error {
	why := ""
	switch {
	case s == "":
		why = "is empty"
	case !utf8.ValidString(s):
		why = "is not valid UTF-8"
	case strings.ContainsFunc(s, unicode.IsControl):
		why = "has a control character"
	case strings.ContainsRune(s, utf8.RuneError):
		why = "has a replacement character (U+FFFD): the text was damaged before it was sent"
	case utf8.RuneCountInString(s) <= limit:
		return nil
	default:
		return failField(name, "%s is longer than %d characters", name, limit)
	}
	return failField(name, "%s %s", name, why)
}

func failField(name, format string, args ...any) error {
	return fault.New(fault.Validation, format, args...).With("field", name)
}

// key reads the name of a member and returns it unescaped: a part of the document, or a copy
// if it has escapes.
func (s *scanner) key() ([]byte, error) {
	if s.peek() != '"' {
		return nil, s.unexpected("a quoted name")
	}
	raw, err := s.text()
	if err != nil || bytes.IndexByte(raw, '\\') < 0 {
		return raw, err
	}
	return unescape(raw), nil
}

// text reads a string and returns the bytes between its quotes.
func (s *scanner) text() ([]byte, error) {
	s.pos++
	for start := s.pos; s.pos < len(s.doc); {
		switch c := s.doc[s.pos]; {
		case c == '"':
			s.pos++
			return s.doc[start : s.pos-1], nil
		case c < ' ':
			return nil, s.fail(s.pos, "%s in a string", control(c))
		case c != '\\' && c < utf8.RuneSelf:
			s.pos++
		default:
			if err := s.character(); err != nil {
				return nil, err
			}
		}
	}
	return nil, s.unexpected("the rest of the string")
}

// character reads an escape or a multi-byte character.
func (s *scanner) character() error {
	rest := s.doc[s.pos:]
	if rest[0] == '\\' {
		_, size, why := escape(rest)
		if why != "" {
			return s.fail(s.pos, "%s", why)
		}
		s.pos += size
		return nil
	}
	r, size := utf8.DecodeRune(rest)
	if r == utf8.RuneError && size == 1 {
		return s.fail(s.pos, "invalid UTF-8")
	}
	s.pos += size
	return nil
}

// escape decodes the escape at the beginning of b. It returns the character, the length of
// the escape, and why it is invalid, or "".
func escape(b []byte) (r rune, size int, why string) {
	if len(b) < 2 {
		return 0, 0, "the document ends in an escape"
	}
	if b[1] == 'u' {
		return escapeHex(b)
	}
	i := strings.IndexByte(`"\/bfnrt`, b[1])
	if i < 0 {
		return 0, 0, "unknown escape in a string"
	}
	return rune("\"\\/\b\f\n\r\t"[i]), 2, ""
}

// escapeHex decodes \uXXXX, or two of them for a surrogate pair. Half a pair has no UTF-8
// form, and PostgreSQL cannot store NUL.
func escapeHex(b []byte) (r rune, size int, why string) {
	r, ok := hex4(b[2:])
	switch {
	case !ok:
		return 0, 0, `malformed \u escape`
	case r == 0:
		return 0, 0, "NUL character in a string"
	case !utf16.IsSurrogate(r):
		return r, 6, ""
	}
	if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		low, _ := hex4(b[8:])
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			return r, 12, ""
		}
	}
	return 0, 0, `lone surrogate in a \u escape`
}

// hex4 decodes four hexadecimal digits.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		i := strings.IndexByte("0123456789abcdef", lower(c))
		if i < 0 {
			return 0, false
		}
		r = r<<4 | rune(i)
	}
	return r, true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// unescape returns a string without its escapes. REQUIRES: text has accepted it.
func unescape(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		if raw[0] != '\\' {
			out, raw = append(out, raw[0]), raw[1:]
			continue
		}
		r, size, _ := escape(raw)
		out, raw = utf8.AppendRune(out, r), raw[size:]
	}
	return out
}
