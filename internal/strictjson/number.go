package strictjson

import "strconv"

// wholeDigits is how many digits a number may have before its point and be
// finite as a float64 whatever the digits are: the largest float64 has 309.
const wholeDigits = 308

// number reads a number as the grammar of JSON has it.
func (s *scanner) number() error {
	start := s.pos
	if s.peek() == '-' {
		s.pos++
	}
	whole, err := s.whole()
	if err != nil {
		return err
	}
	if err := s.fraction(); err != nil {
		return err
	}
	exp := s.pos
	if err := s.exponent(); err != nil {
		return err
	}
	if why := fits(s.doc[start:s.pos], whole, s.doc[exp:s.pos]); why != "" {
		return s.fail(start, "%s", why)
	}
	if s.plain && exp < s.pos && plainLength(string(s.doc[start:s.pos])) > MaxNumber {
		return s.fail(start, "a number of more than %d bytes without its exponent", MaxNumber)
	}
	return nil
}

// plainLength is how many bytes a number has without its exponent and without zeros that
// are worth nothing.
func plainLength(lit string) int {
	d, ok := decimalOf(lit)
	n := 0
	if d.negative {
		n = 1
	}
	switch whole := len(d.digits) + d.exp; {
	case !ok || d.digits == "":
		return 1
	case d.exp >= 0:
		return n + whole
	case whole > 0:
		return n + len(d.digits) + len(".")
	default:
		return n + len("0.") - d.exp
	}
}

// whole reads the digits before the point and returns how many there are.
func (s *scanner) whole() (int, error) {
	if s.peek() != '0' {
		return s.digits()
	}
	s.pos++
	if isDigit(s.peek()) {
		return 0, s.fail(s.pos-1, "a number with a leading zero")
	}
	return 1, nil
}

// fraction reads the point and the digits behind it, where there are any.
func (s *scanner) fraction() error {
	if s.peek() != '.' {
		return nil
	}
	s.pos++
	_, err := s.digits()
	return err
}

// exponent reads "e", a sign and digits, where there are any.
func (s *scanner) exponent() error {
	if c := s.peek(); c != 'e' && c != 'E' {
		return nil
	}
	s.pos++
	if c := s.peek(); c == '+' || c == '-' {
		s.pos++
	}
	_, err := s.digits()
	return err
}

// digits reads one digit or more and returns how many there are.
func (s *scanner) digits() (int, error) {
	start := s.pos
	for isDigit(s.peek()) {
		s.pos++
	}
	if s.pos == start {
		return 0, s.unexpected("a digit")
	}
	return s.pos - start, nil
}

// fits says why a number is refused, "" if it is not. A float64 overflows on
// the large side; on the small side PostgreSQL does, whose numeric has no more
// than 16383 digits behind the point and refuses even 0e-20000. The bound on
// the exponent stays far from that, because jsonb writes the number out in
// full: with 1e-16383 in it, a document of 1 MiB reads back as gigabytes.
func fits(lit []byte, whole int, exp []byte) (why string) {
	switch {
	case len(lit) > MaxNumber:
		return "a number of more than " + strconv.Itoa(MaxNumber) + " bytes"
	case len(exp) == 0 && whole <= wholeDigits:
		return ""
	case len(exp) > 0 && !exponentFits(exp[1:]):
		return "a number with an exponent beyond " + strconv.Itoa(MaxNumber)
	}
	if _, err := strconv.ParseFloat(string(lit), 64); err != nil {
		return "a number too large for a float64"
	}
	return ""
}

func exponentFits(digits []byte) bool {
	n, err := strconv.Atoi(string(digits))
	return err == nil && -MaxNumber <= n && n <= MaxNumber
}
