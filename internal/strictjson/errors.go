package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/fault"
)

// maxShown is the maximum number of characters of a name in an error, so that an error is
// not as long as the document.
const maxShown = 64

// unslash escapes a name for a JSON pointer.
var unslash = strings.NewReplacer("~", "~0", "/", "~1")

// fail returns an error about the value being read.
func (s *scanner) fail(at int, format string, args ...any) error {
	return s.refuse(at, s.pointer(), fmt.Sprintf(format, args...))
}

// failKey returns an error about the name of a member of the object being read.
func (s *scanner) failKey(at int, key []byte, format string, args ...any) error {
	member := s.pointer() + "/" + segment(key)
	return s.refuse(at, member, fmt.Sprintf(format, args...))
}

// failClash returns an error about a name that repeats an earlier one.
func (s *scanner) failClash(at int, key, earlier []byte) error {
	if bytes.Equal(key, earlier) {
		return s.failKey(at, key, "duplicate field %s", quote(key))
	}
	return s.failKey(at, key, "field %s differs only by case from %s", quote(key), quote(earlier))
}

func (s *scanner) refuse(at int, pointer, problem string) error {
	return fault.New(fault.Validation, "%s at %s (byte %d)", problem, place(s.pointer()), at).
		With("pointer", pointer)
}

// unexpected returns an error about the byte at the position, or about the end of the document.
func (s *scanner) unexpected(expected string) error {
	if s.pos >= len(s.doc) {
		return s.fail(s.pos, "expected %s, got the end of the document", expected)
	}
	c := s.doc[s.pos]
	if c < ' ' {
		return s.fail(s.pos, "expected %[2]s, got %[1]s", control(c), expected)
	}
	r, size := utf8.DecodeRune(s.doc[s.pos:])
	if r == utf8.RuneError && size == 1 {
		return s.fail(s.pos, "expected %s, got invalid UTF-8", expected)
	}
	return s.fail(s.pos, "expected %[2]s, got %[1]q", r, expected)
}

// pointer returns the JSON pointer of the value being read.
func (s *scanner) pointer() string {
	var b strings.Builder
	for _, st := range s.path[:s.depth] {
		b.WriteByte('/')
		if st.isIndex {
			b.WriteString(strconv.Itoa(st.index))
		} else {
			b.WriteString(segment(st.key))
		}
	}
	return b.String()
}

// segment escapes a name for a JSON pointer.
func segment(key []byte) string { return unslash.Replace(shorten(key)) }

// quote quotes a name for a message.
func quote(key []byte) string { return strconv.Quote(shorten(key)) }

// shorten truncates a long name between two characters.
func shorten(key []byte) string {
	n := 0
	for i := range string(key) {
		if n == maxShown {
			return string(key[:i]) + "…"
		}
		n++
	}
	return string(key)
}

// place formats a pointer for a message.
func place(pointer string) string {
	if pointer == "" {
		return "the root"
	}
	return pointer
}

// control names a control character.
func control(c byte) string {
	if c == 0 {
		return "NUL byte"
	}
	return fmt.Sprintf("control character 0x%02x", c)
}

// kindOf returns the type of a value, by its first byte.
func kindOf(c byte) string {
	switch c {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// Within prefixes the pointer of an error with at, the pointer of the value that was
// validated separately.
func Within(err error, at string) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	inner, _ := f.Fields["pointer"].(string)
	return f.With("pointer", at+inner)
}
