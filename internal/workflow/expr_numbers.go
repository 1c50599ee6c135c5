package workflow

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// isNumber reports whether a value is a number.
func isNumber(v any) bool {
	switch v.(type) {
	case int, float64, json.Number:
		return true
	}
	return false
}

// integerOf returns the value of a number that is an integer.
func integerOf(v any) (int, bool) {
	if n, ok := v.(int); ok {
		return n, true
	}
	if !isNumber(v) {
		return 0, false
	}
	f := float(v)
	return int(f), f == math.Trunc(f) && math.Abs(f) < 1<<53
}

// float returns the nearest float64 of a number. v must be a number.
func float(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case json.Number:
		f, _ := strconv.ParseFloat(string(v), 64) // out of range: infinite
		return f
	}
	f, _ := v.(float64)
	return f
}

// order compares two numbers. Both must be numbers.
func order(a, b any) int {
	x, xInt := a.(int)
	y, yInt := b.(int)
	switch {
	case xInt && yInt:
		return cmp.Compare(x, y)
	case xInt:
		return -orderInteger(float(b), x)
	case yInt:
		return orderInteger(float(a), y)
	}
	return cmp.Compare(float(a), float(b))
}

// orderInteger compares a number with an integer, without loss of digits. NaN is less than all numbers, as
// in [cmp.Compare], because int(NaN) depends on the processor.
func orderInteger(f float64, n int) int {
	switch {
	case f >= 1<<63:
		return 1
	case f < -1<<63 || math.IsNaN(f):
		return -1
	}
	down := math.Floor(f)
	return cmp.Or(cmp.Compare(int(down), n), cmp.Compare(f, down))
}

// comparison returns an operator on the order of two numbers or two strings.
func comparison(what string, holds func(order int) bool) operation {
	return func(m *meter, args []any) any {
		if isNumber(args[0]) && isNumber(args[1]) {
			return holds(order(args[0], args[1]))
		}
		a, aText := args[0].(string)
		b, bText := args[1].(string)
		if !aText || !bText {
			panic(refuse("%s requires two numbers or two strings, got %s and %s", what, kindOf(args[0]), kindOf(args[1])))
		}
		m.payText(a)
		return holds(cmp.Compare(a, b))
	}
}

// areNumbers refuses a value that is not a number.
func areNumbers(what string, args []any) {
	for _, v := range args {
		if !isNumber(v) {
			panic(wrong(what, v, "a number"))
		}
	}
}

// arithmetic returns an operator on two numbers. The result is an integer if both are; an overflow of 64
// bits is an error.
func arithmetic(what string, ints func(x, y int) (z int, ok bool), float64s func(x, y float64) float64) operation {
	return func(_ *meter, args []any) any {
		areNumbers(what, args)
		x, xInt := args[0].(int)
		y, yInt := args[1].(int)
		if !xInt || !yInt {
			return float64s(float(args[0]), float(args[1]))
		}
		z, ok := ints(x, y)
		if !ok {
			panic(overflow(what))
		}
		return z
	}
}

func overflow(what string) error {
	return refuse("the result of %s exceeds a 64-bit integer: use float(x)", what)
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

// add adds numbers or concatenates strings.
func add(m *meter, args []any) any {
	a, aText := args[0].(string)
	b, bText := args[1].(string)
	switch {
	case aText && bText:
		grow(m, len(a)+len(b))
		return a + b
	case aText || bText:
		panic(refuse("+ requires two strings or two numbers, got %s and %s: use string(x)", kindOf(args[0]), kindOf(args[1])))
	}
	return addNumbers(m, args)
}

// divide always returns a float64.
func divide(_ *meter, args []any) any {
	areNumbers("/", args)
	if float(args[1]) == 0 {
		panic(refuse("division by zero: check the divisor first"))
	}
	return float(args[0]) / float(args[1])
}

// integers refuses two values that are not both integers.
func integers(what string, args []any) (x, y int) {
	x, xInt := integerOf(args[0])
	y, yInt := integerOf(args[1])
	if !xInt || !yInt {
		panic(refuse("%s requires two integers, got %s and %s", what, kindOf(args[0]), kindOf(args[1])))
	}
	return x, y
}

func remainder(_ *meter, args []any) any {
	x, y := integers("%", args)
	if y == 0 {
		panic(refuse("division by zero: check the divisor first"))
	}
	return x % y
}

func power(_ *meter, args []any) any {
	areNumbers("**", args)
	return math.Pow(float(args[0]), float(args[1]))
}

// span returns a list of integers, both ends included.
func span(m *meter, args []any) any {
	from, to := integers("..", args)
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

// rounded returns a function that rounds, to an integer if it fits.
func rounded(what string, round func(float64) float64) operation {
	return func(_ *meter, args []any) any {
		areNumbers(what, args)
		if n, ok := args[0].(int); ok {
			return n
		}
		v := round(float(args[0]))
		if n, ok := integerOf(v); ok {
			return n
		}
		return v
	}
}

// extreme returns a function for the least or greatest of its arguments, or of one list.
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

// intOf converts a number, truncated towards zero, or a string to an integer.
func intOf(_ *meter, args []any) any {
	switch v := args[0].(type) {
	case int:
		return v
	case string:
		n, err := strconv.Atoi(v)
		if err != nil {
			panic(refuse("int requires an integer in decimal digits"))
		}
		return n
	}
	areNumbers("int", args)
	f := math.Trunc(float(args[0]))
	if f >= 1<<63 || f < -1<<63 || math.IsNaN(f) {
		panic(overflow("int"))
	}
	return int(f)
}

// floatOf converts a number or a string to a float64.
func floatOf(_ *meter, args []any) any {
	if s, ok := args[0].(string); ok {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || strings.ContainsAny(s, "xXpP_nN") {
			panic(refuse("float requires a number in decimal digits"))
		}
		return f
	}
	areNumbers("float", args)
	return float(args[0])
}
