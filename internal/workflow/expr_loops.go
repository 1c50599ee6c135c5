package workflow

import "github.com/expr-lang/expr/ast"

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

// loop builds a loop. It pays from the budget before the first iteration: one unit for the loop and, for each item, one
// unit plus one per eight syntax nodes of the predicate. The latter covers nodes that pay nothing themselves; each
// operation (see [builder.operation]) and each condition also pays one unit when it is evaluated.
func (b *builder) loop(n *ast.BuiltinNode, run func(*loop) any) evaluator {
	if b.inLoop {
		panic(refuse("%s is inside the predicate of another loop, but loops cannot be nested: use a task", n.Name))
	}
	list, each, cost := b.build(n.Arguments[0]), evaluator(currentItem), 1
	if len(n.Arguments) > 1 {
		before := b.nodes
		b.inLoop = true
		each = b.build(n.Arguments[1].(*ast.PredicateNode).Node)
		b.inLoop = false
		cost += (b.nodes - before) / 8
	}
	return func(f *frame) any {
		all := listOf("a loop", list(f))
		f.meter.pay(1 + len(all)*cost)
		return run(&loop{f, all, each})
	}
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
