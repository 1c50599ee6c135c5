package strictjson

import "strconv"

// wholeDigits is the number of integer digits with which every number is finite as a
// float64: the largest float64 has 309.
const wholeDigits = 308

// number reads a number by the grammar of JSON.
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

// plainLength returns the length of a number without an exponent and without redundant zeros.
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

// whole reads the digits before the decimal point and returns their count.
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

// fraction reads the decimal point and the digits after it, if there are any.
func (s *scanner) fraction() error {
	if s.peek() != '.' {
		return nil
	}
	s.pos++
	_, err := s.digits()
	return err
}

// exponent reads "e", a sign and digits, if there are any.
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

// digits reads one or more digits and returns their count.
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

// fits returns why a number is refused, or "". A large number must fit a float64. A small
// one must fit the numeric type of PostgreSQL, which has at most 16383 digits after the
// decimal point and refuses even 0e-20000. The limit of the exponent is much lower, because
// jsonb writes numbers without exponents: with 1e-16383 in it, a document of 1 MiB would
// read back as gigabytes.
func fits(lit []byte, whole int, exp []byte) (why string) {
	switch {
	case len(lit) > MaxNumber:
		return "a number of more than " + strconv.Itoa(MaxNumber) + " bytes"
	case len(exp) == 0 && whole <= wholeDigits:
		return ""
	case len(exp) > 0 && !exponentFits(exp[1:]):
		return "a number with an absolute exponent above " + strconv.Itoa(MaxNumber)
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
