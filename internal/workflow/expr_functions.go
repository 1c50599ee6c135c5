package workflow

import (
	"math"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// meter holds the rest of a budget.
type meter struct{ left int }

var errBudget = refuse("the expression does too much work: simplify it, or use a task")

// pay takes units from the budget.
func (m *meter) pay(units int) {
	if units < 0 || units > m.left {
		m.left = 0
		panic(errBudget)
	}
	m.left -= units
}

// payText pays for reading strings.
func (m *meter) payText(all ...string) {
	for _, s := range all {
		m.pay(len(s) / 128)
	}
}

// operation is an operator or a function. It is deterministic, and it pays for the time and memory
// that it takes beyond the unit that every operation costs.
type operation func(m *meter, args []any) any

// function is an operation that is called by name.
type function struct {
	least, most int // number of arguments
	do          operation
}

// functions are the functions of expressions, in addition to [loops].
var functions = map[string]function{
	"len": {1, 1, lenOf}, "keys": {1, 1, keysOf}, "values": {1, 1, valuesOf},
	"first": {1, 1, item("first", 0)}, "last": {1, 1, item("last", -1)}, "take": {2, 2, takeOf},
	"min": {1, maxNodes, extreme("min", -1)}, "max": {1, maxNodes, extreme("max", 1)}, "abs": {1, 1, absOf},
	"floor": {1, 1, rounded("floor", math.Floor)}, "ceil": {1, 1, rounded("ceil", math.Ceil)}, "round": {1, 1, rounded("round", math.Round)},
	"int": {1, 1, intOf}, "float": {1, 1, floatOf}, "string": {1, 1, stringOf},
	"lower": {1, 1, ofText("lower", strings.ToLower)}, "upper": {1, 1, ofText("upper", strings.ToUpper)}, "trim": {1, 1, ofText("trim", strings.TrimSpace)},
	"trimPrefix": {2, 2, ofTexts("trimPrefix", strings.TrimPrefix)}, "trimSuffix": {2, 2, ofTexts("trimSuffix", strings.TrimSuffix)},
	"hasPrefix": {2, 2, startsWith}, "hasSuffix": {2, 2, endsWith},
	"split": {2, 2, splitText}, "join": {1, 2, joinTexts}, "replace": {3, 3, replaceText},
}

// operators have two operands. [builder.binary] handles those that do not always evaluate both.
var operators = map[string]operation{
	"+": add, "-": subtract, "*": multiply, "/": divide, "%": remainder, "**": power, "^": power, "..": span,
	"==": equals, "!=": differs,
	"<":  comparison("<", func(c int) bool { return c < 0 }),
	"<=": comparison("<=", func(c int) bool { return c <= 0 }),
	">":  comparison(">", func(c int) bool { return c > 0 }),
	">=": comparison(">=", func(c int) bool { return c >= 0 }),
	"in": in, "contains": ofTexts("contains", strings.Contains), "startsWith": startsWith, "endsWith": endsWith,
}

// unary operators have one operand.
var unary = map[string]operation{"-": negate, "+": numberOf, "not": not, "!": not}

// pattern is a regular expression with its cost.
type pattern struct {
	re   *regexp.Regexp
	size int // the number of instructions
}

// maxPattern limits the instructions of a pattern.
const maxPattern = 1000

func newPattern(text string) *pattern {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		panic(refuse("%s is not a valid pattern: correct it", configdoc.Show(text)).Wrap(err))
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(prog.Inst) > maxPattern {
		panic(refuse("pattern %s is too large: make it smaller", configdoc.Show(text)).Wrap(err))
	}
	return &pattern{re: regexp.MustCompile(text), size: len(prog.Inst)}
}

// matches pays in advance: every instruction may see every byte of the text.
func (p *pattern) matches(m *meter, args []any) any {
	s := textOf("matches", args[0])
	m.pay(len(s) * p.size / 4)
	return p.re.MatchString(s)
}

// kindOf returns the kind of a value in words.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "nil"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

// wrong returns the error for a value of the wrong kind.
func wrong(what string, v any, wants string) error {
	hint := ""
	if v == nil {
		hint = ": use x ?? y for a value that may be missing"
	}
	return refuse("%s requires %s, got %s%s", what, wants, kindOf(v), hint)
}
