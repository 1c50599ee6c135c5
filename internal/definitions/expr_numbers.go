package definitions

import (
	"cmp"
	"encoding/json"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// isNumber says whether a value is a number.
func isNumber(v any) bool {
	switch v.(type) {
	case int, float64, json.Number:
		return true
	}
	return false
}

// wholeOf is a number that is whole.
func wholeOf(v any) (int, bool) {
	if n, ok := v.(int); ok {
		return n, true
	}
	if !isNumber(v) {
		return 0, false
	}
	f := float(v)
	return int(f), f == math.Trunc(f) && math.Abs(f) < 1<<53
}

// float is what a number is worth, as near as can be. REQUIRES: isNumber.
func float(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case json.Number:
		f, _ := strconv.ParseFloat(string(v), 64) // beyond all numbers: infinite
		return f
	}
	f, _ := v.(float64)
	return f
}

// order compares two numbers. REQUIRES: isNumber of both.
func order(a, b any) int {
	x, xWhole := a.(int)
	y, yWhole := b.(int)
	switch {
	case xWhole && yWhole:
		return cmp.Compare(x, y)
	case xWhole:
		return -orderWhole(float(b), x)
	case yWhole:
		return orderWhole(float(a), y)
	}
	return cmp.Compare(float(a), float(b))
}

// orderWhole compares a number with a whole one, without a loss of digits.
func orderWhole(f float64, n int) int {
	switch {
	case f >= 1<<63:
		return 1
	case f < -1<<63:
		return -1
	}
	down := math.Floor(f)
	return cmp.Or(cmp.Compare(int(down), n), cmp.Compare(f, down))
}

// compare tells the order of two numbers or two texts.
func compare(m *meter, what string, args []any) (int, error) {
	if isNumber(args[0]) && isNumber(args[1]) {
		return order(args[0], args[1]), nil
	}
	a, aText := args[0].(string)
	b, bText := args[1].(string)
	if aText && bText {
		return cmp.Compare(a, b), m.payText(a)
	}
	return 0, refuse("%s compares two numbers or two texts, and these are %s and %s", what, kindOf(args[0]), kindOf(args[1]))
}

func less(m *meter, args []any) (any, error) {
	c, err := compare(m, "<", args)
	return c < 0, err
}

func lessOrEqual(m *meter, args []any) (any, error) {
	c, err := compare(m, "<=", args)
	return c <= 0, err
}

func more(m *meter, args []any) (any, error) {
	c, err := compare(m, ">", args)
	return c > 0, err
}

func moreOrEqual(m *meter, args []any) (any, error) {
	c, err := compare(m, ">=", args)
	return c >= 0, err
}

// areNumbers refuses what is no number.
func areNumbers(what string, args []any) error {
	for _, v := range args {
		if !isNumber(v) {
			return wrong(what, v, "a number")
		}
	}
	return nil
}

func noRoom(what string) error {
	return refuse("%s gives a whole number of more than 64 bits: use float(x)", what)
}

// add adds numbers, or puts texts together.
func add(m *meter, args []any) (any, error) {
	a, aText := args[0].(string)
	b, bText := args[1].(string)
	if aText && bText {
		return grown(m, len(a)+len(b), func() string { return a + b })
	}
	if aText || bText {
		return nil, refuse("+ puts two texts together or adds two numbers, and these are %s and %s: write string(x)", kindOf(args[0]), kindOf(args[1]))
	}
	return sumOf("+", args[0], args[1])
}

func sumOf(what string, a, b any) (any, error) {
	if err := areNumbers(what, []any{a, b}); err != nil {
		return nil, err
	}
	x, xWhole := a.(int)
	y, yWhole := b.(int)
	if !xWhole || !yWhole {
		return float(a) + float(b), nil
	}
	if z := x + y; (z > x) == (y > 0) {
		return z, nil
	}
	return nil, noRoom(what)
}

func subtract(_ *meter, args []any) (any, error) {
	if err := areNumbers("-", args); err != nil {
		return nil, err
	}
	x, xWhole := args[0].(int)
	y, yWhole := args[1].(int)
	if !xWhole || !yWhole {
		return float(args[0]) - float(args[1]), nil
	}
	if z := x - y; (z < x) == (y > 0) {
		return z, nil
	}
	return nil, noRoom("-")
}

func multiply(_ *meter, args []any) (any, error) {
	if err := areNumbers("*", args); err != nil {
		return nil, err
	}
	x, xWhole := args[0].(int)
	y, yWhole := args[1].(int)
	if !xWhole || !yWhole {
		return float(args[0]) * float(args[1]), nil
	}
	if z, ok := product(x, y); ok {
		return z, nil
	}
	return nil, noRoom("*")
}

// product multiplies; not ok if there is no room for it.
func product(x, y int) (int, bool) {
	hi, lo := bits.Mul64(size(x), size(y))
	switch negative := (x < 0) != (y < 0); {
	case hi != 0 || lo > 1<<63 || !negative && lo == 1<<63:
		return 0, false
	case negative:
		return int(-lo), true
	default:
		return int(lo), true
	}
}

// size is a number without its sign.
func size(x int) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// divide always gives a number with a fraction.
func divide(_ *meter, args []any) (any, error) {
	if err := areNumbers("/", args); err != nil {
		return nil, err
	}
	if float(args[1]) == 0 {
		return nil, refuse("a division by zero")
	}
	return float(args[0]) / float(args[1]), nil
}

func remainder(_ *meter, args []any) (any, error) {
	x, xWhole := wholeOf(args[0])
	y, yWhole := wholeOf(args[1])
	switch {
	case !xWhole || !yWhole:
		return nil, refuse("%% takes two whole numbers, and these are %s and %s", kindOf(args[0]), kindOf(args[1]))
	case y == 0:
		return nil, refuse("a division by zero")
	}
	return x % y, nil
}

func power(_ *meter, args []any) (any, error) {
	if err := areNumbers("**", args); err != nil {
		return nil, err
	}
	return math.Pow(float(args[0]), float(args[1])), nil
}

// span is a list of whole numbers, both ends included.
func span(m *meter, args []any) (any, error) {
	from, fromWhole := wholeOf(args[0])
	to, toWhole := wholeOf(args[1])
	if !fromWhole || !toWhole {
		return nil, refuse(".. takes two whole numbers, and these are %s and %s", kindOf(args[0]), kindOf(args[1]))
	}
	if from > to {
		return []any{}, nil
	}
	if n := uint64(to) - uint64(from); n >= uint64(m.left) {
		return nil, errBudget
	}
	all := make([]any, 0, to-from+1)
	for i := range to - from + 1 {
		all = append(all, from+i)
	}
	return all, m.pay(len(all))
}

func sum(m *meter, args []any) (any, error) {
	all, err := listOf("sum", args[0])
	if err != nil {
		return nil, err
	}
	if err := m.pay(len(all)); err != nil {
		return nil, err
	}
	var total any = 0
	for _, v := range all {
		if total, err = sumOf("sum", total, v); err != nil {
			return nil, err
		}
	}
	return total, nil
}

func negate(m *meter, args []any) (any, error) {
	if n, ok := args[0].(int); ok {
		return subtract(m, []any{0, n})
	}
	return multiply(m, []any{args[0], -1})
}

func numberOf(_ *meter, args []any) (any, error) { return args[0], areNumbers("+", args) }

func absOf(m *meter, args []any) (any, error) {
	if err := areNumbers("abs", args); err != nil {
		return nil, err
	}
	if order(args[0], 0) < 0 {
		return negate(m, args)
	}
	return args[0], nil
}

func floorOf(_ *meter, args []any) (any, error) { return rounded("floor", math.Floor, args) }
func ceilOf(_ *meter, args []any) (any, error)  { return rounded("ceil", math.Ceil, args) }
func roundOf(_ *meter, args []any) (any, error) { return rounded("round", math.Round, args) }

// rounded gives a whole number where it has room in one.
func rounded(what string, f func(float64) float64, args []any) (any, error) {
	if err := areNumbers(what, args); err != nil {
		return nil, err
	}
	if n, ok := args[0].(int); ok {
		return n, nil
	}
	v := f(float(args[0]))
	if n, ok := wholeOf(v); ok {
		return n, nil
	}
	return v, nil
}

func leastOf(m *meter, args []any) (any, error)    { return extreme(m, "min", -1, args) }
func greatestOf(m *meter, args []any) (any, error) { return extreme(m, "max", 1, args) }

// extreme finds the least or the greatest of its arguments, or of one list of them.
func extreme(m *meter, what string, sign int, args []any) (best any, err error) {
	if all, ok := args[0].([]any); ok && len(args) == 1 {
		args = all
	}
	if err := m.pay(len(args)); err != nil {
		return nil, err
	}
	if err := areNumbers(what, args); err != nil {
		return nil, err
	}
	for _, v := range args {
		if best == nil || order(v, best)*sign > 0 {
			best = v
		}
	}
	return best, nil
}

// intOf makes a whole number of a number, cut off towards zero, or of a text.
func intOf(_ *meter, args []any) (any, error) {
	switch v := args[0].(type) {
	case int:
		return v, nil
	case string:
		n, err := strconv.Atoi(v)
		if err != nil {
			return nil, refuse("int wants a whole number in digits")
		}
		return n, nil
	}
	if err := areNumbers("int", args); err != nil {
		return nil, err
	}
	f := math.Trunc(float(args[0]))
	if f >= 1<<63 || f < -1<<63 {
		return nil, noRoom("int")
	}
	return int(f), nil
}

// floatOf makes a number with a fraction of a number or of a text.
func floatOf(_ *meter, args []any) (any, error) {
	if s, ok := args[0].(string); ok {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || strings.ContainsAny(s, "xXpP_nN") {
			return nil, refuse("float wants a number in digits")
		}
		return f, nil
	}
	if err := areNumbers("float", args); err != nil {
		return nil, err
	}
	return float(args[0]), nil
}
