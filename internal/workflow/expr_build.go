package workflow

import (
	"maps"
	"slices"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// evaluator computes one node of an expression. Its result is nil, bool, int, float64, string,
// []any, map[string]any, or json.Number for a JSON number that is not an int. An error is a
// panic with a [fault.Error], as in text/template; [catchPanic] returns it as an error.
type evaluator func(f *frame) any

// frame is the state of one evaluation.
type frame struct {
	*scope
	locals []any // the values of let, and of operands that are used twice
	item   any   // the current item of a loop
	index  int   // the index of item
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

// binary builds an operator with two operands.
func (p *parser) binary(op lexer.Token, left, right term) term {
	t := p.binaryType(op, left.typ, right.typ)
	switch op.Value {
	case "??":
		return p.make(op.Location, t, func(f *frame) any {
			if v := left.eval(f); v != nil {
				return v
			}
			return right.eval(f)
		}, left, right)
	case "and", "&&", "or", "||":
		return p.logic(op.Location, left, right, op.Value == "and" || op.Value == "&&")
	case "matches":
		if right.text == nil { // its size adds to the cost
			panic(refuse("matches requires a literal pattern: put it in quotes"))
		}
		return p.operation(op.Location, t, p.pattern(op.Location, *right.text).matches, left)
	}
	made := p.operation(op.Location, t, operators[op.Value], left, right)
	if op.Value == "+" {
		made.start = left.start
	}
	return made
}

// logic builds a conjunction, or a disjunction.
func (p *parser) logic(at file.Location, left, right term, and bool) term {
	return p.make(at, typ{kind: boolKind}, func(f *frame) any {
		if f.yes(left.eval) != and {
			return !and
		}
		return f.yes(right.eval)
	}, left, right)
}

// isFunction reports whether a name is that of a function.
func isFunction(name string) bool {
	_, loop := loops[name]
	_, function := functions[name]
	return loop || function
}

// call parses the arguments of a function. The first one may precede it, and a pipe.
func (p *parser) call(name lexer.Token, args ...term) term {
	if _, ok := loops[name.Value]; ok {
		return p.loopCall(name, args)
	}
	fn, ok := functions[name.Value]
	if !ok {
		panic(noFunction(name.Value))
	}
	p.expect("(")
	for !p.is(")") {
		args = append(args, p.expression(0))
		if !p.is(")") {
			p.expect(",")
		}
	}
	p.expect(")")
	if given := len(args); given < fn.least || given > fn.most {
		panic(refuse("%s got %s: pass %d", name.Value, configdoc.Counted(given), fn.least))
	}
	return p.operation(name.Location, p.callType(name.Value, fn, args), fn.do, args...)
}

func noFunction(name string) error {
	names := slices.AppendSeq(slices.Collect(maps.Keys(loops)), maps.Keys(functions))
	slices.Sort(names)
	return refuse("function %s does not exist: the functions are %s", configdoc.Show(name), configdoc.List(names))
}
