package workflow

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/types"

	"github.com/holdfast-go/holdfast/internal/testlevel"
)

// TestParserAgreesWithExprLang verifies that random expressions are accepted or refused as by the parser and the checker of
// expr-lang, and that those that are accepted mean the same: with parentheses around every part, as in the syntax tree of expr-lang,
// they have the same result.
func TestParserAgreesWithExprLang(t *testing.T) {
	testlevel.OneGoroutine(t)
	r := testlevel.Rand(t)
	accepted, refused, different := 0, 0, 0
	for range testlevel.Pick(3000, 30_000, 1_000_000) {
		text := randomExpr(r, 4, false)
		if r.IntN(3) == 0 { // with a mistake in the syntax
			i, j := r.IntN(len(text)+1), r.IntN(len(text)+1)
			text = text[:min(i, j)] + text[max(i, j):]
		}
		tree, want := checker.ParseCheck(text, judgeConfig())
		if want == nil {
			want = outsideOf(tree.Node)
		}
		mine, err := compile(text)
		if (err == nil) != (want == nil) {
			if different++; !tolerated(text, err, want) {
				t.Fatalf("%s: got error %v, expr-lang returns %v", text, err, want)
			}
			continue
		}
		if err != nil {
			refused++
			continue
		}
		accepted++
		if _, term := parse(text); term.size != sizeOf(tree.Node) {
			t.Fatalf("%s has %d nodes, want %d", text, term.size, sizeOf(tree.Node))
		}
		whole, err := compile(inParentheses(tree.Node))
		if err != nil {
			t.Fatalf("%s: %s: %v", text, inParentheses(tree.Node), err)
		}
		a, errA := mine.Eval(seen)
		b, errB := whole.Eval(seen)
		if string(a) != string(b) || fmt.Sprint(errA) != fmt.Sprint(errB) || fmt.Sprint(mine.mentions, mine.all) != fmt.Sprint(whole.mentions, whole.all) {
			t.Fatalf("%s returned %s, error %v, and\n%s returned %s, error %v", text, a, errA, inParentheses(tree.Node), b, errB)
		}
	}
	if all := accepted + refused + different; accepted < all/10 || refused < all/10 || different > all/500 {
		t.Errorf("%d expressions were accepted, %d were refused and %d were judged differently, want a tenth, a tenth and at most one in 500", accepted, refused, different)
	}
}

// sizeOf returns the number of nodes of a tree that are evaluated. It determines what a loop costs.
func sizeOf(n ast.Node) int {
	c := counter{}
	ast.Walk(&n, c)
	return len(c)
}

// counter holds the nodes. An operand that expr-lang evaluates twice is one node.
type counter map[ast.Node]bool

// Visit implements [ast.Visitor].
func (c counter) Visit(n *ast.Node) {
	switch n := (*n).(type) {
	case *ast.PredicateNode, *ast.PairNode:
		return
	case *ast.BinaryNode:
		if n.Operator == "matches" { // the pattern is not evaluated
			delete(c, n.Right)
		}
	}
	c[*n] = true
}

// judgeConfig returns our variables and functions for expr-lang.
func judgeConfig() *conf.Config {
	c := conf.CreateNew()
	env := types.Map{}
	for _, name := range variables {
		env[name] = types.Any
	}
	c.WithEnv(env)
	c.MaxNodes = maxNodes
	for name := range c.Builtins {
		if !isFunction(name) {
			delete(c.Builtins, name)
		}
	}
	return c
}

// outsideOf returns an error if a tree has a part that is not in our language.
func outsideOf(n ast.Node) (err error) {
	var v outside
	ast.Walk(&n, &v)
	return v.err
}

type outside struct{ err error }

// Visit implements [ast.Visitor].
func (v *outside) Visit(n *ast.Node) {
	switch n := (*n).(type) {
	case *ast.SliceNode, *ast.SequenceNode, *ast.BytesNode, *ast.CallNode:
		v.err = errors.New("a construct outside of the language")
	case *ast.IdentifierNode:
		if isFunction(n.Value) || strings.HasPrefix(n.Value, "$") {
			v.err = errors.New("a function or $ as a variable")
		}
	case *ast.BuiltinNode:
		fn, plain := functions[n.Name]
		if !isFunction(n.Name) || plain && (len(n.Arguments) < fn.least || len(n.Arguments) > fn.most) {
			v.err = errors.New("a function outside of the language, or a wrong number of arguments")
		}
		if len(n.Arguments) == 2 {
			if p, ok := n.Arguments[1].(*ast.PredicateNode); ok {
				inner := loopsIn{}
				ast.Walk(&p.Node, &inner)
				if inner.found {
					v.err = errors.New("a nested loop")
				}
			}
		}
	case *ast.BinaryNode:
		if s, literal := n.Right.(*ast.StringNode); n.Operator == "matches" {
			if !literal {
				v.err = errors.New("a pattern that is not literal")
			} else if _, err := regexp.Compile(s.Value); err != nil {
				v.err = err
			}
		}
	}
}

type loopsIn struct{ found bool }

// Visit implements [ast.Visitor].
func (v *loopsIn) Visit(n *ast.Node) {
	if b, ok := (*n).(*ast.BuiltinNode); ok && loops[b.Name] != nil {
		v.found = true
	}
}

// tolerated reports whether a difference is intended. Min and max check all of their arguments, not only those before a list or
// an unknown value. In expr-lang, a list of an unknown value and nil is a list of nil, and a choice between a boolean and an
// unknown value is a boolean, which refuses valid expressions.
func tolerated(text string, got, want error) bool {
	if got != nil {
		return strings.Contains(got.Error(), "min cannot be called") || strings.Contains(got.Error(), "max cannot be called")
	}
	return regexp.MustCompile(`nil|\?|if `).MatchString(text) && regexp.MustCompile(`type|cannot use|cannot get|argument|predicate|elements|takes only array`).MatchString(want.Error())
}

// inParentheses returns the text of a tree with parentheses around each part.
func inParentheses(n ast.Node) string {
	list := func(all []ast.Node) string {
		texts := make([]string, len(all))
		for i, x := range all {
			texts[i] = inParentheses(x)
		}
		return strings.Join(texts, ", ")
	}
	switch n := n.(type) {
	case *ast.FloatNode:
		return strconv.FormatFloat(n.Value, 'e', -1, 64)
	case *ast.UnaryNode:
		return "(" + n.Operator + " (" + inParentheses(n.Node) + "))"
	case *ast.BinaryNode:
		if s, literal := n.Right.(*ast.StringNode); literal && n.Operator == "matches" {
			return "((" + inParentheses(n.Left) + ") matches " + s.String() + ")"
		}
		return "((" + inParentheses(n.Left) + ") " + n.Operator + " (" + inParentheses(n.Right) + "))"
	case *ast.ChainNode:
		return inParentheses(n.Node)
	case *ast.MemberNode:
		return "(" + inParentheses(n.Node) + ")[" + inParentheses(n.Property) + "]"
	case *ast.BuiltinNode:
		return n.Name + "(" + list(n.Arguments) + ")"
	case *ast.PredicateNode:
		return "{" + inParentheses(n.Node) + "}"
	case *ast.VariableDeclaratorNode:
		return "(let " + n.Name + " = (" + inParentheses(n.Value) + "); " + inParentheses(n.Expr) + ")"
	case *ast.ConditionalNode:
		return "((" + inParentheses(n.Cond) + ") ? (" + inParentheses(n.Exp1) + ") : (" + inParentheses(n.Exp2) + "))"
	case *ast.ArrayNode:
		return "[" + list(n.Nodes) + "]"
	case *ast.MapNode:
		return "{" + list(n.Pairs) + "}"
	case *ast.PairNode:
		return "(" + inParentheses(n.Key) + "): " + inParentheses(n.Value)
	}
	return n.String()
}

// randomExpr returns the text of an expression, which is not always valid.
func randomExpr(r *rand.Rand, depth int, inLoop bool) string {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	sub := func() string { return randomExpr(r, depth-1, inLoop) }
	if depth <= 0 || r.IntN(6) == 0 {
		if inLoop && r.IntN(2) == 0 {
			return pick("#", "#.n", ".n", "#index", "# .ok", ".map?.b")
		}
		return pick("1", "2", "0", "1.5", ".5", "1e2", "0x1F", "0b11", "1_000", "'a'", `"b\n"`, "`c`", "true", "false", "nil", "input", "input.a", "input.list", "input.text",
			"input?.map", "state.count", "steps.pay", "steps['pay']", "steps", "run.id", "x", "[]", "{}", "[1, 2]", "['a', 'b']", "{a: 1}", "1..3", "input.list[0].n", "len")
	}
	switch r.IntN(16) {
	case 0, 1, 2:
		return sub() + pick(" + ", " - ", " * ", " / ", " % ", " ** ", " ^ ", "-", "..", "+") + sub()
	case 3, 4:
		return sub() + pick(" < ", " > ", " <= ", ">=", " == ", " != ", " in ", " not in ", " contains ", " not startsWith ", " endsWith ") + sub()
	case 5:
		return sub() + pick(" and ", " or ", " && ", " || ", " ?? ", "??") + sub()
	case 6:
		return pick("-", "+", "not ", "!", "- ") + sub()
	case 7:
		return "(" + sub() + ")"
	case 8:
		return sub() + pick(" ? ", "?") + sub() + " : " + sub()
	case 9:
		return pick("if "+sub()+" { "+sub()+" } else { "+sub()+" }", sub()+" ?: "+sub(), sub()+" matches '^a'", sub()+" not matches "+pick("'a|b'", "'('", "input.text"))
	case 10:
		return "let x = " + sub() + "; " + sub()
	case 11:
		return "[" + sub() + ", " + sub() + pick("]", ",]", "][0]")
	case 12:
		return "{" + pick("a", "'b'", "1", "("+sub()+")") + ": " + sub() + pick("}", ", }", ", c: "+sub()+"}", "}.a", "}['b']")
	case 13:
		return sub() + pick(".a", "?.n", "["+sub()+"]", "?.["+sub()+"]", "[-1]", ".in", "[1:2]")
	case 14:
		name := pick("len", "keys", "values", "first", "last", "abs", "floor", "int", "float", "string", "lower", "trim", "max", "join", "sum", "count")
		if two := pick("take", "min", "max", "split", "join", "hasPrefix", "trimSuffix", "lower"); r.IntN(3) == 0 {
			return two + "(" + sub() + ", " + sub() + ")"
		} else if r.IntN(4) == 0 {
			return sub() + " | " + name + "()"
		}
		return name + "(" + sub() + ")"
	}
	name, predicate := pick("filter", "map", "all", "any", "none", "one", "count", "sum", "find", "findIndex", "findLast"), randomExpr(r, depth-1, true)
	return pick(name+"("+sub()+", "+predicate+")", name+"("+sub()+", {"+predicate+"})", sub()+" | "+name+"("+predicate+")")
}
