package workflow

import (
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// evaluator computes one node of an expression. Its result is nil, bool, int, float64, string,
// []any, map[string]any, or json.Number for a JSON number that is not an int. An error is a
// panic with a [fault.Error], as in text/template; [catchPanic] returns it as an error.
type evaluator func(f *frame) any

// frame is the state of one evaluation.
type frame struct {
	*scope
	locals []any // the values of let
	item   any   // the current item of a loop
	index  int   // the index of item
}

// builder builds evaluators from the syntax tree, records the steps that the expression refers to, and refuses
// everything that is not in our language.
type builder struct {
	locals   map[string]int // names of let: index in frame.locals. The checker separates scopes
	mentions map[string]bool
	all      bool
	inLoop   bool
	nodes    int // number of nodes built so far
}

func (b *builder) build(n ast.Node) evaluator {
	b.nodes++
	switch n := n.(type) {
	case *ast.NilNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.StringNode:
		return constant(n)
	case *ast.PointerNode:
		if n.Name == "index" {
			return func(f *frame) any { return f.index }
		}
		return currentItem
	case *ast.IdentifierNode:
		return b.identifier(n.Value)
	case *ast.VariableDeclaratorNode:
		return b.let(n)
	case *ast.ChainNode: // a?.b is equivalent to a.b
		return b.build(n.Node)
	case *ast.MemberNode:
		return b.member(n)
	case *ast.UnaryNode:
		if do := unary[n.Operator]; do != nil {
			return b.operation(do, n.Node)
		}
	case *ast.BinaryNode:
		if p := b.binary(n); p != nil {
			return p
		}
	case *ast.ConditionalNode:
		return b.choice(n)
	case *ast.ArrayNode:
		return b.operation(listed, n.Nodes...)
	case *ast.MapNode:
		return b.object(n)
	case *ast.BuiltinNode:
		return b.builtin(n)
	case *ast.CallNode:
		panic(noFunction(n.Callee.String()))
	}
	panic(refuse("%s is not supported in expressions: write it in another way", configdoc.Show(n.String())))
}

// constant returns an evaluator for a literal.
func constant(n ast.Node) evaluator {
	var v any
	switch n := n.(type) {
	case *ast.BoolNode:
		v = n.Value
	case *ast.IntegerNode:
		v = n.Value
	case *ast.FloatNode:
		v = n.Value
	case *ast.StringNode:
		v = n.Value
	}
	return func(*frame) any { return v }
}

func currentItem(f *frame) any { return f.item }

// identifier reads a variable. An expression that reads steps as a whole may refer to any step.
func (b *builder) identifier(name string) evaluator {
	i, local := b.locals[name]
	if local && !strings.HasPrefix(name, "$") {
		return func(f *frame) any { return f.locals[i] }
	}
	if !slices.Contains(variables, name) { // a function without a call, or a name of expr-lang's own
		panic(refuse("variable %s does not exist: the variables are %s", configdoc.Show(name), configdoc.List(variables)))
	}
	b.all = b.all || name == "steps"
	return func(f *frame) any { return f.get(name) }
}

func (b *builder) let(n *ast.VariableDeclaratorNode) evaluator {
	value := b.build(n.Value)
	i, ok := b.locals[n.Name]
	if !ok {
		i = len(b.locals)
		b.locals[n.Name] = i
	}
	body := b.build(n.Expr)
	return func(f *frame) any {
		f.locals[i] = value(f)
		return body(f)
	}
}

// member records the step that steps.NAME refers to.
func (b *builder) member(n *ast.MemberNode) evaluator {
	all := b.all
	p := b.operation(get, n.Node, n.Property)
	of, isVariable := n.Node.(*ast.IdentifierNode)
	name, isText := n.Property.(*ast.StringNode)
	if isVariable && of.Value == "steps" && isText {
		b.all, b.mentions[name.Value] = all, true
	}
	return p
}

// binary returns nil for an operator that is not in our language.
func (b *builder) binary(n *ast.BinaryNode) evaluator {
	switch n.Operator {
	case "??":
		left, right := b.build(n.Left), b.build(n.Right)
		return func(f *frame) any {
			if v := left(f); v != nil {
				return v
			}
			return right(f)
		}
	case "and", "&&":
		left, right := b.build(n.Left), b.build(n.Right)
		return func(f *frame) any { return f.yes(left) && f.yes(right) }
	case "or", "||":
		left, right := b.build(n.Left), b.build(n.Right)
		return func(f *frame) any { return f.yes(left) || f.yes(right) }
	case "matches":
		text, ok := n.Right.(*ast.StringNode)
		if !ok { // its size adds to the cost
			panic(refuse("matches requires a literal pattern: put it in quotes"))
		}
		return b.operation(newPattern(text.Value).matches, n.Left)
	}
	if do := operators[n.Operator]; do != nil {
		return b.operation(do, n.Left, n.Right)
	}
	return nil
}

// yes evaluates a condition.
func (f *frame) yes(p evaluator) bool {
	v := p(f)
	yes, ok := v.(bool)
	if !ok {
		panic(wrong("a condition", v, "a boolean"))
	}
	f.meter.pay(1)
	return yes
}

func (b *builder) choice(n *ast.ConditionalNode) evaluator {
	cond, then, otherwise := b.build(n.Cond), b.build(n.Exp1), b.build(n.Exp2)
	return func(f *frame) any {
		if f.yes(cond) {
			return then(f)
		}
		return otherwise(f)
	}
}

func (b *builder) object(n *ast.MapNode) evaluator {
	var all []ast.Node
	for _, pair := range n.Pairs {
		if pair, ok := pair.(*ast.PairNode); ok {
			all = append(all, pair.Key, pair.Value)
		}
	}
	return b.operation(objectOf, all...)
}

func (b *builder) builtin(n *ast.BuiltinNode) evaluator {
	if run := loops[n.Name]; run != nil {
		return b.loop(n, run)
	}
	fn, ok := functions[n.Name]
	if !ok {
		panic(noFunction(n.Name))
	}
	if given := len(n.Arguments); given < fn.least || given > fn.most {
		fn.do = func(*meter, []any) any {
			panic(refuse("%s got %s: pass %d", n.Name, configdoc.Counted(given), fn.least))
		}
	}
	return b.operation(fn.do, n.Arguments...)
}

func noFunction(name string) error {
	names := slices.AppendSeq(slices.Collect(maps.Keys(loops)), maps.Keys(functions))
	slices.Sort(names)
	return refuse("function %s does not exist: the functions are %s", configdoc.Show(name), configdoc.List(names))
}

// operation evaluates the arguments, pays one unit and applies the operation.
func (b *builder) operation(do operation, nodes ...ast.Node) evaluator {
	evaluators := make([]evaluator, len(nodes))
	for i, n := range nodes {
		evaluators[i] = b.build(n)
	}
	return func(f *frame) any {
		args := make([]any, len(evaluators))
		for i, p := range evaluators {
			args[i] = p(f)
		}
		f.meter.pay(1)
		return do(&f.meter, args)
	}
}
