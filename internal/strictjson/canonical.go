package strictjson

import (
	"bytes"
	"fmt"
	"slices"
)

// Canonical returns a JSON document with sorted members, without white space and with
// uniform escapes and numbers, so that documents have equal bytes exactly if they are
// [Equal]. It returns false for a document that [Check] refuses. It does not decode the
// document into values, which would take fifty times its memory.
func Canonical(doc []byte) ([]byte, bool) {
	if Check(doc) != nil {
		return nil, false
	}
	s := scanner{doc: doc}
	return s.canonical(make([]byte, 0, len(doc))), true
}

// canonical appends the value at the position. REQUIRES: Check accepts the document.
func (s *scanner) canonical(out []byte) []byte {
	s.space()
	start := s.pos
	switch s.peek() {
	case '{':
		return s.canonicalObject(out)
	case '[':
		s.pos++
		for out = append(out, '['); !s.next(']'); {
			if s.next(',') {
				out = append(out, ',')
			}
			out = s.canonical(out)
		}
		return append(out, ']')
	case '"':
		text, _ := s.key()
		return appendText(out, text)
	}
	_ = s.token(nil)
	if lit := s.doc[start:s.pos]; lit[0] == '-' || isDigit(lit[0]) {
		return appendNumber(out, lit)
	}
	return append(out, s.doc[start:s.pos]...)
}

// longestPlain is the length up to which a number is written without an exponent, so that
// most numbers stay as they are written.
const longestPlain = 32

// appendNumber appends a number in the form that all numbers of the same value have.
func appendNumber(out, lit []byte) []byte {
	if len(lit) <= longestPlain && isDigit(lit[0]) && !bytes.ContainsAny(lit, ".eE") {
		return append(out, lit...)
	}
	d, ok := decimalOf(string(lit))
	switch {
	case !ok: // Check refuses it
		return append(out, lit...)
	case d.digits == "":
		return append(out, '0')
	}
	if d.negative {
		out = append(out, '-')
	}
	whole := len(d.digits) + d.exp // the number of digits before the point
	switch {
	case plainLength(string(lit)) > longestPlain:
		return fmt.Appendf(out, "%se%d", d.digits, d.exp)
	case d.exp >= 0:
		return append(append(out, d.digits...), zeros[:d.exp]...)
	case whole > 0:
		out = append(append(out, d.digits[:whole]...), '.')
		return append(out, d.digits[whole:]...)
	}
	return append(append(append(out, "0."...), zeros[:-whole]...), d.digits...)
}

const zeros = "00000000000000000000000000000000" // longestPlain

// canonicalObject appends an object, and sorts its members afterwards if they are not sorted.
func (s *scanner) canonicalObject(out []byte) []byte {
	type member struct {
		name       []byte
		start, end int
	}
	var all []member
	begin, ordered := len(out)+1, true
	s.pos++
	for out = append(out, '{'); !s.next('}'); {
		if s.next(',') {
			out = append(out, ',')
		}
		s.space()
		m := member{start: len(out)}
		m.name, _ = s.key()
		s.next(':')
		out = s.canonical(append(appendText(out, m.name), ':'))
		m.end = len(out)
		if n := len(all); n > 0 && bytes.Compare(all[n-1].name, m.name) > 0 {
			ordered = false
		}
		all = append(all, m)
	}
	if !ordered {
		slices.SortFunc(all, func(a, b member) int { return bytes.Compare(a.name, b.name) })
		was := bytes.Clone(out[begin:])
		out = out[:begin]
		for i, m := range all {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, was[m.start-begin:m.end-begin]...)
		}
	}
	return append(out, '}')
}

// appendText appends a string as encoding/json writes it, without copying it first.
func appendText(out, text []byte) []byte {
	out = append(out, '"')
	for i, c := range text {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c == '\b':
			out = append(out, '\\', 'b')
		case c == '\f':
			out = append(out, '\\', 'f')
		case c == '\n':
			out = append(out, '\\', 'n')
		case c == '\r':
			out = append(out, '\\', 'r')
		case c == '\t':
			out = append(out, '\\', 't')
		case c < ' ' || c == '<' || c == '>' || c == '&':
			out = fmt.Appendf(out, `\u%04x`, c)
		case (c == 0xa8 || c == 0xa9) && i > 1 && text[i-2] == 0xe2 && text[i-1] == 0x80: // U+2028 and U+2029
			out = fmt.Appendf(out[:len(out)-2], `\u20%02x`, c-0x80)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
