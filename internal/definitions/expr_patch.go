package definitions

import (
	"github.com/expr-lang/expr/ast"
)

// doFunc is the function that a program calls for all that it does, see [do].
const doFunc = "$do"

// patcher rewrites a program so that all it does goes through [do], where it is paid for.
// What is left to the library is which part is worked out next.
type patcher struct{}

// Visit implements [ast.Visitor]: it comes to each part after what the part is made of.
func (patcher) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.ChainNode: // a?.b is a.b
		*node = n.Node
	case *ast.MemberNode:
		ast.Patch(node, call("get", n.Node, n.Property))
	case *ast.UnaryNode:
		ast.Patch(node, call(unary[n.Operator], n.Node))
	case *ast.BinaryNode:
		patchBinary(node, n)
	case *ast.ConditionalNode:
		n.Cond = call("bool", n.Cond)
	case *ast.BuiltinNode:
		patchBuiltin(node, n)
	}
}

var unary = map[string]string{"-": "negate", "+": "number", "not": "not", "!": "not"}

func patchBinary(node *ast.Node, n *ast.BinaryNode) {
	switch n.Operator {
	case "??":
	case "and", "or", "&&", "||":
		n.Left, n.Right = call("bool", n.Left), call("bool", n.Right)
	case "matches":
		text, _ := n.Right.(*ast.StringNode)
		p, err := newPattern(text.Value)
		if err == nil { // [inspection.operator] has seen it
			ast.Patch(node, call(n.Operator, n.Left, &ast.ConstantNode{Value: p}))
		}
	default:
		ast.Patch(node, call(n.Operator, n.Left, n.Right))
	}
}

func patchBuiltin(node *ast.Node, n *ast.BuiltinNode) {
	if !loops[n.Name] {
		ast.Patch(node, call(n.Name, n.Arguments...))
		return
	}
	n.Arguments[0] = call("loop", n.Arguments[0], &ast.IntegerNode{Value: 1 + count(n.Arguments[1:])/8})
	if len(n.Arguments) > 1 && n.Name != "map" && n.Name != "sum" {
		if p, ok := n.Arguments[1].(*ast.PredicateNode); ok {
			p.Node = call("bool", p.Node)
		}
	}
	if n.Name != "sum" {
		return
	}
	// A sum is that of what map gives: the library's own would go round at 64 bits.
	of := n.Arguments[0]
	if len(n.Arguments) > 1 {
		of = &ast.BuiltinNode{Name: "map", Arguments: n.Arguments}
	}
	ast.Patch(node, call("sum", of))
}

// count is how many parts there are.
func count(all []ast.Node) (n int) {
	for _, one := range all {
		c := counter(0)
		ast.Walk(&one, &c)
		n += int(c)
	}
	return n
}

type counter int

// Visit implements [ast.Visitor].
func (c *counter) Visit(*ast.Node) { *c++ }

// call is a call of [do].
func call(op string, args ...ast.Node) ast.Node {
	all := []ast.Node{&ast.IdentifierNode{Value: meterVar}, &ast.StringNode{Value: op}}
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: doFunc}, Arguments: append(all, args...)}
}
