package workflow

import (
	"math"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/expr-lang/expr/file"

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
	takes       []kind // of the arguments; the last one is that of all that follow
	gives       kind   // of the result; 0 if it depends on the arguments, see [parser.callType]
}

// functions are the functions of expressions, in addition to [loops].
var functions = map[string]function{
	"len":        {1, 1, lenOf, []kind{stringKind | listsKind | objectKind}, intKind},
	"keys":       {1, 1, keysOf, []kind{objectKind}, listKind},
	"values":     {1, 1, valuesOf, []kind{objectKind}, listKind},
	"first":      {1, 1, item("first", 0), []kind{listsKind}, 0},
	"last":       {1, 1, item("last", -1), []kind{listsKind}, 0},
	"take":       {2, 2, takeOf, []kind{listsKind, intKind}, 0},
	"min":        {1, maxNodes, extreme("min", -1), []kind{listsKind | numberKind}, 0},
	"max":        {1, maxNodes, extreme("max", 1), []kind{listsKind | numberKind}, 0},
	"abs":        {1, 1, absOf, []kind{numberKind}, 0},
	"floor":      {1, 1, rounded("floor", math.Floor), []kind{numberKind}, floatKind},
	"ceil":       {1, 1, rounded("ceil", math.Ceil), []kind{numberKind}, floatKind},
	"round":      {1, 1, rounded("round", math.Round), []kind{numberKind}, floatKind},
	"int":        {1, 1, intOf, []kind{numberKind | stringKind}, intKind},
	"float":      {1, 1, floatOf, []kind{numberKind | stringKind}, floatKind},
	"string":     {1, 1, stringOf, []kind{^kind(0)}, stringKind},
	"lower":      {1, 1, ofText("lower", strings.ToLower), []kind{stringKind}, stringKind},
	"upper":      {1, 1, ofText("upper", strings.ToUpper), []kind{stringKind}, stringKind},
	"trim":       {1, 1, ofText("trim", strings.TrimSpace), []kind{stringKind}, stringKind},
	"trimPrefix": {2, 2, ofTexts("trimPrefix", strings.TrimPrefix), []kind{stringKind}, stringKind},
	"trimSuffix": {2, 2, ofTexts("trimSuffix", strings.TrimSuffix), []kind{stringKind}, stringKind},
	"hasPrefix":  {2, 2, startsWith, []kind{stringKind}, boolKind},
	"hasSuffix":  {2, 2, endsWith, []kind{stringKind}, boolKind},
	"split":      {2, 2, splitText, []kind{stringKind}, stringsKind},
	"join":       {1, 2, joinTexts, []kind{listsKind, stringKind}, stringKind},
	"replace":    {3, 3, replaceText, []kind{stringKind}, stringKind},
}

// operators have two operands. [parser.binary] handles those that do not always evaluate both.
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

// pattern compiles a pattern. Simplify and Compile write out repetitions, so a pattern that is too large is refused before them.
func (p *parser) pattern(at file.Location, text string) *pattern {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		p.fail(at, "%v", err)
	}
	if instructions(parsed) <= maxPattern {
		prog, err := syntax.Compile(parsed.Simplify())
		if err == nil && len(prog.Inst) <= maxPattern {
			return &pattern{re: regexp.MustCompile(text), size: len(prog.Inst)}
		}
	}
	panic(refuse("pattern %s is too large: make it smaller", configdoc.Show(text)))
}

// instructions estimates the number of instructions of a pattern. The result is at most maxPattern+1.
func instructions(re *syntax.Regexp) int {
	n := len(re.Rune)
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	switch re.Op {
	case syntax.OpCapture:
		n += 2
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		n++
	case syntax.OpAlternate:
		n += len(re.Sub) - 1
	case syntax.OpRepeat:
		copies, branches := re.Max, re.Max-re.Min
		if re.Max < 0 {
			copies, branches = max(re.Min, 1), 1
		}
		n = n*copies + branches
	case syntax.OpCharClass:
		n = 1 // it matches one of the runes
	}
	return min(max(n, 1), maxPattern+1)
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
