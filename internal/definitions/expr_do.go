package definitions

import (
	"regexp"
	"regexp/syntax"

	"github.com/holdfast-go/holdfast/internal/tree"
)

// meter is what is left of one run's budget.
type meter struct{ left int }

var errBudget = refuse("the expression has too much to do: make it smaller, or write a task for it")

// pay takes from the budget.
func (m *meter) pay(units int) error {
	if units < 0 || units > m.left {
		m.left = 0
		return errBudget
	}
	m.left -= units
	return nil
}

// payText takes what it costs to go through texts.
func (m *meter) payText(all ...string) error {
	for _, s := range all {
		if err := m.pay(len(s) / 128); err != nil {
			return err
		}
	}
	return nil
}

// op is something that an expression does. Its arguments are what JSON can say: nil,
// bool, int, float64 or, as it was written, json.Number, string, []any, map[string]any.
type op struct {
	least, most int // how many arguments
	do          func(m *meter, args []any) (any, error)
}

// do does what a program asks for: the meter, what to do, and with what.
func do(params ...any) (any, error) {
	m, _ := params[0].(*meter)
	name, _ := params[1].(string)
	args := params[2:]
	o, ok := operators[name]
	if !ok {
		o, ok = functions[name]
	}
	switch {
	case !ok || m == nil:
		return nil, refuse("there is no function %s", tree.Show(name))
	case len(args) < o.least || len(args) > o.most:
		return nil, refuse("%s is given %s: give it %d", name, tree.Counted(len(args)), o.least)
	}
	if err := m.pay(1); err != nil {
		return nil, err
	}
	return o.do(m, args)
}

// functions are those that an expression may call, beside [loops]. They always say the
// same of the same, and take no more time than they pay for.
var functions = map[string]op{
	"len": {1, 1, lenOf}, "keys": {1, 1, keysOf}, "values": {1, 1, valuesOf},
	"first": {1, 1, firstOf}, "last": {1, 1, lastOf}, "take": {2, 2, takeOf},
	"min": {1, maxNodes, leastOf}, "max": {1, maxNodes, greatestOf},
	"abs": {1, 1, absOf}, "floor": {1, 1, floorOf}, "ceil": {1, 1, ceilOf}, "round": {1, 1, roundOf},
	"int": {1, 1, intOf}, "float": {1, 1, floatOf}, "string": {1, 1, stringOf},
	"lower": {1, 1, lowerOf}, "upper": {1, 1, upperOf}, "trim": {1, 1, trimOf},
	"trimPrefix": {2, 2, trimPrefix}, "trimSuffix": {2, 2, trimSuffix},
	"hasPrefix": {2, 2, startsWith}, "hasSuffix": {2, 2, endsWith},
	"split": {2, 2, splitText}, "join": {1, 2, joinTexts}, "replace": {3, 3, replaceText},
}

// operators are what a program does without a call.
var operators = map[string]op{
	"get": {2, 2, get}, "bool": {1, 1, boolOf}, "not": {1, 1, not}, "loop": {2, 2, loop}, "sum": {1, 1, sum},
	"negate": {1, 1, negate}, "number": {1, 1, numberOf},
	"+": {2, 2, add}, "-": {2, 2, subtract}, "*": {2, 2, multiply}, "/": {2, 2, divide}, "%": {2, 2, remainder},
	"**": {2, 2, power}, "^": {2, 2, power}, "..": {2, 2, span},
	"==": {2, 2, equals}, "!=": {2, 2, differs},
	"<": {2, 2, less}, "<=": {2, 2, lessOrEqual}, ">": {2, 2, more}, ">=": {2, 2, moreOrEqual},
	"in": {2, 2, in}, "contains": {2, 2, contains}, "startsWith": {2, 2, startsWith}, "endsWith": {2, 2, endsWith},
	"matches": {2, 2, matches},
}

// pattern is a regular expression and what it costs.
type pattern struct {
	re   *regexp.Regexp
	size int // its instructions
}

// maxPattern is how many instructions a pattern may have.
const maxPattern = 1000

func newPattern(text string) (*pattern, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, refuse("%s is no pattern: correct it", tree.Show(text)).Wrap(err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(prog.Inst) > maxPattern {
		return nil, refuse("the pattern %s is too large: make it smaller", tree.Show(text)).Wrap(err)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, refuse("%s is no pattern: correct it", tree.Show(text)).Wrap(err)
	}
	return &pattern{re: re, size: len(prog.Inst)}, nil
}

// matches pays beforehand: a pattern goes through a text with all its instructions.
func matches(m *meter, args []any) (any, error) {
	s, err := textOf("matches", args[0])
	if err != nil {
		return nil, err
	}
	p, _ := args[1].(*pattern)
	if err := m.pay(len(s) * p.size / 4); err != nil {
		return nil, err
	}
	return p.re.MatchString(s), nil
}

// kindOf says in words what a value is.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "nil"
	case bool:
		return "true or false"
	case string:
		return "a text"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

// wrong says that a value is of another kind than is wanted.
func wrong(what string, v any, wants string) error {
	hint := ""
	if v == nil {
		hint = ": write x ?? y for a value that may be missing"
	}
	return refuse("%s wants %s, and this is %s%s", what, wants, kindOf(v), hint)
}
