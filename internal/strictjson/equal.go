package strictjson

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Equal reports whether two documents have the same JSON value. Members may be in any order,
// and numbers are compared by value, so that 1e2 equals 100.
//
// It is meant for documents that have passed [Check], including the form that a database
// returns, which may be longer than Check allows. Other documents are equal only if their
// bytes are.
func Equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, okX := parse(a)
	y, okY := parse(b)
	return okX && okY && same(x, y)
}

// parse decodes a document and reports whether it is valid, with no data after it.
func parse(doc []byte) (v any, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		return nil, false
	}
	_, err := dec.Token()
	return v, err == io.EOF
}

func same(x, y any) bool {
	switch x := x.(type) {
	case map[string]any:
		y, ok := y.(map[string]any)
		return ok && maps.EqualFunc(x, y, same)
	case []any:
		y, ok := y.([]any)
		return ok && slices.EqualFunc(x, y, same)
	case json.Number:
		y, ok := y.(json.Number)
		return ok && (x == y || sameNumber(string(x), string(y)))
	}
	return x == y
}

// sameNumber compares numbers by their normal form. It does no arithmetic: 1e400 as an
// integer has 400 digits, and a document can contain 100,000 of these.
func sameNumber(x, y string) bool {
	a, okA := decimalOf(x)
	b, okB := decimalOf(y)
	return okA && okB && a == b
}

// decimal is ±digits × 10^exp.
// INVARIANT: digits neither begins nor ends with a zero; zero is decimal{}.
type decimal struct {
	negative bool
	digits   string
	exp      int
}

// decimalOf parses a JSON number. It returns false if the exponent exceeds 32 bits.
func decimalOf(lit string) (d decimal, ok bool) {
	lit, d.negative = strings.CutPrefix(lit, "-")
	mantissa, exp := lit, "0"
	if i := strings.IndexAny(lit, "eE"); i >= 0 {
		mantissa, exp = lit[:i], lit[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return decimal{}, true
	}
	d.digits = strings.TrimRight(digits, "0")
	n, err := strconv.ParseInt(exp, 10, 32)
	d.exp = int(n) - len(fraction) + len(digits) - len(d.digits)
	return d, err == nil
}
