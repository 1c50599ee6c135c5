package scopes

import (
	"bytes"
	"strconv"
	"strings"
)

// plainNumbers writes the numbers of a valid document without exponents:
// PostgreSQL does so by itself when it stores 1e2, SQLite does not, and then
// the one would take it for a whole number and the other would not.
func plainNumbers(doc []byte) []byte {
	if !bytes.ContainsAny(doc, "eE") {
		return doc
	}
	var out bytes.Buffer
	for i := 0; i < len(doc); {
		n := tokenLength(doc[i:])
		token := doc[i : i+n]
		i += n
		if c := token[0]; (c == '-' || c >= '0' && c <= '9') && bytes.ContainsAny(token, "eE") {
			out.WriteString(plain(string(token)))
			continue
		}
		out.Write(token)
	}
	return out.Bytes()
}

// tokenLength is the length of the string or number that doc begins with, or 1.
func tokenLength(doc []byte) int {
	switch c := doc[0]; {
	case c == '"':
		for i := 1; i < len(doc); i++ {
			switch doc[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return len(doc)
	case c == '-' || c >= '0' && c <= '9':
		n := 1
		for n < len(doc) && bytes.IndexByte([]byte("0123456789.eE+-"), doc[n]) >= 0 {
			n++
		}
		return n
	}
	return 1
}

// plain moves the point of a number by its exponent, and keeps every digit.
func plain(number string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	shift, err := strconv.Atoi(exponent)
	if err != nil {
		return number
	}
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	point := len(whole) + shift
	if point <= 0 {
		digits = strings.Repeat("0", 1-point) + digits
		point = 1
	}
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	whole, fraction = strings.TrimLeft(digits[:point], "0"), digits[point:]
	if whole == "" {
		whole = "0"
	}
	if fraction == "" {
		return sign + whole
	}
	return sign + whole + "." + fraction
}
