package workflow

import (
	"cmp"
	"encoding/json"
	"math"
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

// orderWhole compares a number with a whole one, without a loss of digits. NaN is less than
// all, as in [cmp.Compare]: int(NaN) is another number on another processor.
func orderWhole(f float64, n int) int {
	switch {
	case f >= 1<<63:
		return 1
	case f < -1<<63 || math.IsNaN(f):
		return -1
	}
	down := math.Floor(f)
	return cmp.Or(cmp.Compare(int(down), n), cmp.Compare(f, down))
}

// comparison is an operator on the order of two numbers or two texts.
func comparison(what string, holds func(order int) bool) operation {
	return func(m *meter, args []any) any {
		if isNumber(args[0]) && isNumber(args[1]) {
			return holds(order(args[0], args[1]))
		}
		a, aText := args[0].(string)
		b, bText := args[1].(string)
		if !aText || !bText {
			panic(refuse("%s compares two numbers or two texts, and these are %s and %s", what, kindOf(args[0]), kindOf(args[1])))
		}
		m.payText(a)
		return holds(cmp.Compare(a, b))
	}
}

// areNumbers refuses a value that is no number.
func areNumbers(what string, args []any) {
	for _, v := range args {
		if !isNumber(v) {
			panic(wrong(what, v, "a number"))
		}
	}
}

// arithmetic is an operator on two numbers. Its result is whole if both are; not ok if it
// has more than 64 bits.
func arithmetic(what string, whole func(x, y int) (z int, ok bool), float64s func(x, y float64) float64) operation {
	return func(_ *meter, args []any) any {
		areNumbers(what, args)
		x, xWhole := args[0].(int)
		y, yWhole := args[1].(int)
		if !xWhole || !yWhole {
			return float64s(float(args[0]), float(args[1]))
		}
		z, ok := whole(x, y)
		if !ok {
			panic(noRoom(what))
		}
		return z
	}
}

func noRoom(what string) error {
	return refuse("%s gives a whole number of more than 64 bits: use float(x)", what)
}

var (
	addNumbers = arithmetic("+", plus, func(x, y float64) float64 { return x + y })
	addToSum   = arithmetic("sum", plus, func(x, y float64) float64 { return x + y })
	subtract   = arithmetic("-", minus, func(x, y float64) float64 { return x - y })
	multiply   = arithmetic("*", times, func(x, y float64) float64 { return x * y })
)

func plus(x, y int) (int, bool)  { return x + y, (x+y > x) == (y > 0) }
func minus(x, y int) (int, bool) { return x - y, (x-y < x) == (y > 0) }
func times(x, y int) (int, bool) {
	return x * y, x == 0 || x*y/x == y && (x != -1 || y != math.MinInt)
}

// add adds numbers, or joins texts.
func add(m *meter, args []any) any {
	a, aText := args[0].(string)
	b, bText := args[1].(string)
	switch {
	case aText && bText:
		grow(m, len(a)+len(b))
		return a + b
	case aText || bText:
		panic(refuse("+ puts two texts together or adds two numbers, and these are %s and %s: write string(x)", kindOf(args[0]), kindOf(args[1])))
	}
	return addNumbers(m, args)
}

// divide always gives a float64.
func divide(_ *meter, args []any) any {
	areNumbers("/", args)
	if float(args[1]) == 0 {
		panic(refuse("a division by zero"))
	}
	return float(args[0]) / float(args[1])
}

// wholes refuses two values that are not both whole numbers.
func wholes(what string, args []any) (x, y int) {
	x, xWhole := wholeOf(args[0])
	y, yWhole := wholeOf(args[1])
	if !xWhole || !yWhole {
		panic(refuse("%s takes two whole numbers, and these are %s and %s", what, kindOf(args[0]), kindOf(args[1])))
	}
	return x, y
}

func remainder(_ *meter, args []any) any {
	x, y := wholes("%", args)
	if y == 0 {
		panic(refuse("a division by zero"))
	}
	return x % y
}

func power(_ *meter, args []any) any {
	areNumbers("**", args)
	return math.Pow(float(args[0]), float(args[1]))
}

// span is a list of whole numbers, both ends included.
func span(m *meter, args []any) any {
	from, to := wholes("..", args)
	if from > to {
		return []any{}
	}
	if n := uint64(to) - uint64(from); n >= uint64(m.left) {
		panic(errBudget)
	}
	m.pay(to - from + 1)
	all := make([]any, to-from+1)
	for i := range all {
		all[i] = from + i
	}
	return all
}

func sum(m *meter, all []any) any {
	m.pay(len(all))
	var total any = 0
	for _, v := range all {
		total = addToSum(m, []any{total, v})
	}
	return total
}

func negate(m *meter, args []any) any {
	if n, ok := args[0].(int); ok {
		return subtract(m, []any{0, n})
	}
	return multiply(m, []any{args[0], -1})
}

func numberOf(_ *meter, args []any) any {
	areNumbers("+", args)
	return args[0]
}

func absOf(m *meter, args []any) any {
	areNumbers("abs", args)
	if order(args[0], 0) < 0 {
		return negate(m, args)
	}
	return args[0]
}

// rounded gives a whole number where there is room for it.
func rounded(what string, round func(float64) float64) operation {
	return func(_ *meter, args []any) any {
		areNumbers(what, args)
		if n, ok := args[0].(int); ok {
			return n
		}
		v := round(float(args[0]))
		if n, ok := wholeOf(v); ok {
			return n
		}
		return v
	}
}

// extreme finds the least or the greatest of its arguments, or of one list of them.
func extreme(what string, sign int) operation {
	return func(m *meter, args []any) (best any) {
		if all, ok := args[0].([]any); ok && len(args) == 1 {
			args = all
		}
		m.pay(len(args))
		areNumbers(what, args)
		for _, v := range args {
			if best == nil || order(v, best)*sign > 0 {
				best = v
			}
		}
		return best
	}
}

// intOf makes a whole number of a number, cut off towards zero, or of a text.
func intOf(_ *meter, args []any) any {
	switch v := args[0].(type) {
	case int:
		return v
	case string:
		n, err := strconv.Atoi(v)
		if err != nil {
			panic(refuse("int wants a whole number in digits"))
		}
		return n
	}
	areNumbers("int", args)
	f := math.Trunc(float(args[0]))
	if f >= 1<<63 || f < -1<<63 || math.IsNaN(f) {
		panic(noRoom("int"))
	}
	return int(f)
}

// floatOf makes a float64 of a number or of a text.
func floatOf(_ *meter, args []any) any {
	if s, ok := args[0].(string); ok {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || strings.ContainsAny(s, "xXpP_nN") {
			panic(refuse("float wants a number in digits"))
		}
		return f
	}
	areNumbers("float", args)
	return float(args[0])
}
