package strictjson

// scanner reads a document from beginning to end. It is not safe for concurrent use.
//
// It recurses, bounded by [MaxDepth], and each open object has its names on the stack. A
// loop with an explicit stack was rejected: it needs the same memory and is harder to read.
type scanner struct {
	doc []byte
	pos int

	// path[:depth] is the path from the root to the value being read.
	path  [MaxDepth]pathElement
	depth int

	// probing makes the scanner decode each value separately, to find the value that
	// encoding/json refused.
	probing bool

	// caseSensitive accepts names that differ only by case.
	caseSensitive bool

	// plain limits numbers to [MaxNumber] bytes without their exponents.
	plain bool
}

// pathElement is the name of a member, or an index if isIndex is set.
type pathElement struct {
	key     []byte
	index   int
	isIndex bool
}

// value reads any value and moves the position after it.
func (s *scanner) value(sh *shape) error {
	s.space()
	start := s.pos
	if err := s.token(sh); err != nil {
		return err
	}
	if s.probing {
		return s.probe(sh, start)
	}
	return nil
}

// token reads a value, chosen by its first byte.
func (s *scanner) token(sh *shape) error {
	switch c := s.peek(); {
	case c == '{':
		return s.object(sh)
	case c == '[':
		return s.array(sh)
	case c == '"':
		_, err := s.text()
		return err
	case c == '-' || isDigit(c):
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return s.unexpected("a value")
}

// object reads the members of an object.
func (s *scanner) object(sh *shape) error {
	if s.depth == MaxDepth {
		return s.fail(s.pos, "the document is nested more than %d levels deep", MaxDepth)
	}
	s.pos++
	if s.next('}') {
		return nil
	}
	for seen := (keySet{exact: s.caseSensitive}); ; {
		if err := s.member(sh, &seen); err != nil {
			return err
		}
		if s.next('}') {
			return nil
		}
		if !s.next(',') {
			return s.unexpected(`"," or "}"`)
		}
	}
}

// member reads a name and its value.
func (s *scanner) member(sh *shape, seen *keySet) error {
	s.space()
	at := s.pos
	key, err := s.key()
	if err != nil {
		return err
	}
	if earlier, clash := seen.add(key); clash {
		return s.failClash(at, key, earlier)
	}
	sub, known := sh.member(key)
	if !known {
		return s.failKey(at, key, "unknown field %s", quote(key))
	}
	if !s.next(':') {
		return s.unexpected(`":"`)
	}
	return s.within(pathElement{key: key}, sub)
}

// array reads the items of an array.
func (s *scanner) array(sh *shape) error {
	if s.depth == MaxDepth {
		return s.fail(s.pos, "the document is nested more than %d levels deep", MaxDepth)
	}
	s.pos++
	if s.next(']') {
		return nil
	}
	for i := 0; ; i++ {
		if err := s.within(pathElement{index: i, isIndex: true}, sh.item()); err != nil {
			return err
		}
		if s.next(']') {
			return nil
		}
		if !s.next(',') {
			return s.unexpected(`"," or "]"`)
		}
	}
}

// within reads a value one level deeper.
func (s *scanner) within(st pathElement, sh *shape) error {
	s.path[s.depth] = st
	s.depth++
	err := s.value(sh)
	s.depth--
	return err
}

// literal reads true, false or null.
func (s *scanner) literal(word string) error {
	for i := range len(word) {
		if s.peek() != word[i] {
			return s.unexpected(word)
		}
		s.pos++
	}
	return nil
}

// peek returns the byte at the position, or 0 at the end. A NUL byte is invalid everywhere in
// a document, so it cannot be mistaken for the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.doc) {
		return s.doc[s.pos]
	}
	return 0
}

// next skips white space, and reports whether c follows. If so, it skips c too.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

// space skips the four white space characters of JSON.
func (s *scanner) space() {
	for s.pos < len(s.doc) {
		switch s.doc[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
