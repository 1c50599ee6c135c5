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

// maxShown is how many characters of a name a refusal repeats. The rest is cut:
// an answer should not be as long as the document that it refuses.
const maxShown = 64

var unslash = strings.NewReplacer("~", "~0", "/", "~1")

// fail refuses the value being read.
func (s *scanner) fail(at int, format string, args ...any) error {
	return s.refuse(at, s.pointer(), fmt.Sprintf(format, args...))
}

// failKey refuses a member of the object being read, for its name.
func (s *scanner) failKey(at int, key []byte, format string, args ...any) error {
	member := s.pointer() + "/" + segment(key)
	return s.refuse(at, member, fmt.Sprintf(format, args...))
}

// failClash refuses a name that repeats an earlier one.
func (s *scanner) failClash(at int, key, earlier []byte) error {
	if bytes.Equal(key, earlier) {
		return s.failKey(at, key, "duplicate field %s", quote(key))
	}
	return s.failKey(at, key, "field %s differs only by case from %s", quote(key), quote(earlier))
}

func (s *scanner) refuse(at int, pointer, what string) error {
	return fault.New(fault.Validation, "%s at %s (byte %d)", what, place(s.pointer()), at).
		With("pointer", pointer)
}

// unexpected refuses the byte at the position, or the end that is there.
func (s *scanner) unexpected(wanted string) error {
	if s.pos >= len(s.doc) {
		return s.fail(s.pos, "the document ends where %s is wanted", wanted)
	}
	c := s.doc[s.pos]
	if c < ' ' {
		return s.fail(s.pos, "%s where %s is wanted", control(c), wanted)
	}
	r, size := utf8.DecodeRune(s.doc[s.pos:])
	if r == utf8.RuneError && size == 1 {
		return s.fail(s.pos, "invalid UTF-8 where %s is wanted", wanted)
	}
	return s.fail(s.pos, "unexpected %q where %s is wanted", r, wanted)
}

// pointer is the JSON pointer of the value being read.
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

// segment is a name as a JSON pointer has it.
func segment(key []byte) string { return unslash.Replace(shorten(key)) }

// quote is a name as a message shows it.
func quote(key []byte) string { return strconv.Quote(shorten(key)) }

// shorten cuts a long name between two characters.
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

// place is a pointer as a message shows it.
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

// kindOf names a value by its first byte.
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

// Within says where in the document the value stands that was refused by itself.
func Within(err error, at string) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	inner, _ := f.Fields["pointer"].(string)
	return f.With("pointer", at+inner)
}
