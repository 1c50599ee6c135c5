package workflow

import "github.com/expr-lang/expr/parser/lexer"

// loop iterates over a list; each is evaluated for every item.
type loop struct {
	*frame
	list []any
	each evaluator
}

// loops are the functions that take a predicate.
var loops = map[string]func(l *loop) any{
	"all":    func(l *loop) any { return l.find(false) < 0 },
	"none":   func(l *loop) any { return l.find(true) < 0 },
	"any":    func(l *loop) any { return l.find(true) >= 0 },
	"one":    func(l *loop) any { return len(l.filter()) == 1 },
	"count":  func(l *loop) any { return len(l.filter()) },
	"filter": func(l *loop) any { return l.filter() },
	"map":    func(l *loop) any { return l.results() },
	"sum":    func(l *loop) any { return sum(&l.meter, l.results()) },
	"find": func(l *loop) any {
		if i := l.find(true); i >= 0 {
			return l.list[i]
		}
		return nil
	},
	"findIndex": func(l *loop) any {
		if i := l.find(true); i >= 0 {
			return i
		}
		return nil
	},
	"findLast": func(l *loop) any {
		for i := len(l.list) - 1; i >= 0; i-- {
			if l.at(i).yes(l.each) {
				return l.list[i]
			}
		}
		return nil
	},
}

// loopCall parses and builds a loop. It pays from the budget before the first iteration: one unit for the loop and, for each item, one
// unit plus one per eight syntax nodes of the predicate. The latter covers nodes that pay nothing themselves; each
// operation (see [parser.operation]) and each condition also pays one unit when it is evaluated.
func (p *parser) loopCall(name lexer.Token, args []term) term {
	if p.loop != nil {
		panic(refuse("%s is inside the predicate of another loop, but loops cannot be nested: use a task", name.Value))
	}
	p.expect("(")
	piped := len(args) > 0
	if !piped {
		args = append(args, p.expression(0))
	}
	list := args[0]
	if !list.typ.maybe(listsKind) {
		p.fail(list.at, "%s requires a list, got %v", name.Value, list.typ)
	}
	each, item, cost := evaluator(func(f *frame) any { return f.item }), list.typ.item(), 1
	result := item
	if optional := name.Value == "count" || name.Value == "sum"; !optional || !p.is(")") {
		if !piped {
			p.expect(",")
		}
		predicate := p.predicate(name.Value, item)
		each, result, args = predicate.eval, predicate.typ, append(args, predicate)
		if name.Value == "sum" {
			result.of = nil // as in expr-lang
		}
		cost += predicate.size / 8
		p.accept(",")
	}
	p.expect(")")
	run := loops[name.Value]
	return p.make(name.Location, loopType(name.Value, item, result), func(f *frame) any {
		all := listOf("a loop", list.eval(f))
		f.meter.pay(1 + len(all)*cost)
		return run(&loop{f, all, each})
	}, args...)
}

// predicate parses what a loop evaluates for each item.
func (p *parser) predicate(name string, item typ) term {
	p.loop = &loopScope{name, item}
	var t term
	if p.is("{") {
		t = p.block()
	} else if t = p.expression(0); p.is(";") {
		p.fail(p.tokens[0].Location, "a predicate with a semicolon must be in braces")
	}
	p.loop = nil
	switch computes := name == "map" || name == "sum"; {
	case !computes && !t.typ.maybe(boolKind):
		p.fail(t.at, "the predicate of %s must return a boolean, got %v", name, t.typ)
	case t.typ.kind == nilKind:
		p.fail(t.at, "the predicate of %s must return a value, got %v", name, t.typ)
	}
	return t
}

// at moves to an item.
func (l *loop) at(i int) *frame {
	l.item, l.index = l.list[i], i
	return l.frame
}

// find returns the index of the first item for which the predicate returns want, or -1.
func (l *loop) find(want bool) int {
	for i := range l.list {
		if l.at(i).yes(l.each) == want {
			return i
		}
	}
	return -1
}

func (l *loop) filter() []any {
	found := []any{}
	for i, it := range l.list {
		if l.at(i).yes(l.each) {
			found = append(found, it)
		}
	}
	return found
}

func (l *loop) results() []any {
	all := make([]any, len(l.list))
	for i := range l.list {
		all[i] = l.each(l.at(i))
	}
	return all
}
