package definitions

import (
	"maps"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"

	"github.com/holdfast-go/holdfast/internal/tree"
)

// loops are the functions that take a predicate.
var loops = map[string]bool{
	"all": true, "any": true, "none": true, "one": true, "filter": true, "map": true,
	"find": true, "findIndex": true, "findLast": true, "count": true, "sum": true,
}

// inspection goes through an expression: what is allowed in it, and what it looks at.
type inspection struct {
	uses     map[string]bool
	mentions map[string]bool
	all      bool
}

// node judges a part. inLoop says that it is worked out once for each item of a list.
func (c *inspection) node(n ast.Node, inLoop bool) error {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return c.identifier(n)
	case *ast.MemberNode:
		return c.member(n, inLoop)
	case *ast.BuiltinNode:
		return c.builtin(n, inLoop)
	case *ast.CallNode:
		return noFunction(n.Callee)
	case *ast.BinaryNode:
		if err := c.operator(n); err != nil {
			return err
		}
	}
	parts, known := partsOf(n)
	if !known {
		return refuse("%s is not used in expressions: write it in another way", tree.Show(n.String()))
	}
	return c.nodes(inLoop, parts...)
}

func (c *inspection) nodes(inLoop bool, all ...ast.Node) error {
	for _, n := range all {
		if err := c.node(n, inLoop); err != nil {
			return err
		}
	}
	return nil
}

// partsOf returns what a part is made of; it knows the parts that are allowed.
func partsOf(n ast.Node) (parts []ast.Node, known bool) {
	switch n := n.(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode, *ast.PointerNode, *ast.IdentifierNode:
	case *ast.UnaryNode:
		parts = []ast.Node{n.Node}
	case *ast.BinaryNode:
		parts = []ast.Node{n.Left, n.Right}
	case *ast.ChainNode:
		parts = []ast.Node{n.Node}
	case *ast.MemberNode:
		parts = []ast.Node{n.Node, n.Property}
	case *ast.BuiltinNode:
		parts = n.Arguments
	case *ast.PredicateNode:
		parts = []ast.Node{n.Node}
	case *ast.ConditionalNode:
		parts = []ast.Node{n.Cond, n.Exp1, n.Exp2}
	case *ast.VariableDeclaratorNode:
		parts = []ast.Node{n.Value, n.Expr}
	case *ast.ArrayNode:
		parts = n.Nodes
	case *ast.MapNode:
		parts = n.Pairs
	case *ast.PairNode:
		parts = []ast.Node{n.Key, n.Value}
	default:
		return nil, false
	}
	return parts, true
}

// identifier notes a variable. Of steps alone it cannot be told which are looked at.
func (c *inspection) identifier(n *ast.IdentifierNode) error {
	if strings.HasPrefix(n.Value, "$") {
		return refuse("there is no variable %s: there are %s", tree.Show(n.Value), tree.List(variables))
	}
	if slices.Contains(variables, n.Value) {
		c.uses[n.Value] = true
	}
	c.all = c.all || n.Value == "steps"
	return nil
}

// member notes which step is looked at.
func (c *inspection) member(n *ast.MemberNode, inLoop bool) error {
	of, isVariable := n.Node.(*ast.IdentifierNode)
	name, isText := n.Property.(*ast.StringNode)
	if isVariable && of.Value == "steps" && isText {
		c.uses["steps"], c.mentions[name.Value] = true, true
		return nil
	}
	return c.nodes(inLoop, n.Node, n.Property)
}

// builtin judges a function.
func (c *inspection) builtin(n *ast.BuiltinNode, inLoop bool) error {
	if !loops[n.Name] {
		if !known(n.Name) {
			return noFunction(&ast.IdentifierNode{Value: n.Name})
		}
		return c.nodes(inLoop, n.Arguments...)
	}
	if inLoop {
		return refuse("%s stands inside the predicate of another: loops are not nested, write a task for it", n.Name)
	}
	if err := c.nodes(inLoop, n.Arguments[0]); err != nil {
		return err
	}
	return c.nodes(true, n.Arguments[1:]...)
}

func noFunction(callee ast.Node) error {
	names := slices.Sorted(maps.Keys(loops))
	for name := range functions {
		names = append(names, name)
	}
	slices.Sort(names)
	return refuse("there is no function %s: there are %s", tree.Show(callee.String()), tree.List(names))
}

// operator judges an operator. Which pattern a text is matched with has to be known: its
// size is a part of what it costs.
func (c *inspection) operator(n *ast.BinaryNode) error {
	if n.Operator != "matches" {
		return nil
	}
	p, ok := n.Right.(*ast.StringNode)
	if !ok {
		return refuse("matches takes a pattern that is written out: put it in quotes")
	}
	_, err := newPattern(p.Value)
	return err
}

// known says whether there is a function of this name.
func known(name string) bool {
	_, ok := functions[name]
	return ok
}
