package workflow

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"

	"github.com/holdfast-go/holdfast/internal/configdoc"
)

// parser parses an expression, checks its types, and builds its evaluator, in one pass. The first error is a panic with a
// [fault.Error]; [catchPanic] returns it.
type parser struct {
	source file.Source
	tokens []lexer.Token // not parsed yet; the last one is [lexer.EOF]
	nodes  int           // number of nodes built so far

	locals   map[string]local // the names of let that are in scope
	slots    int              // the length of frame.locals
	loop     *loopScope       // of the predicate that is being parsed; nil for none
	mentions map[string]bool  // the steps that the expression refers to
	whole    int              // how often it refers to all steps
}

// local is a variable that let declares.
type local struct {
	slot int // in frame.locals
	typ  typ
}

// loopScope is what a predicate may refer to.
type loopScope struct {
	name string // of the function
	item typ
}

// term is a parsed part of an expression.
type term struct {
	eval evaluator
	typ  typ
	at   file.Location
	size int // number of nodes

	text  *string // a literal string
	start string  // a literal string with which the result begins
	steps bool    // the variable steps
	chain bool    // it ends in a chain of names with ?.
}

// precedences are those of the operators with two operands. The higher ones bind more tightly.
var precedences = map[string]int{
	"|": 0, "or": 10, "||": 10, "and": 15, "&&": 15,
	"==": 20, "!=": 20, "<": 20, ">": 20, ">=": 20, "<=": 20, "in": 20, "matches": 20, "contains": 20, "startsWith": 20, "endsWith": 20,
	"..": 25, "+": 30, "-": 30, "*": 60, "/": 60, "%": 60, "**": 100, "^": 100, "??": 500,
}

// unaryPrecedences are those of the operators with one operand.
var unaryPrecedences = map[string]int{"not": 50, "!": 50, "-": 90, "+": 90}

// parse parses an expression, and returns the parser for what it has recorded.
func parse(text string) (*parser, term) {
	p := &parser{source: file.NewSource(text), locals: make(map[string]local), mentions: make(map[string]bool)}
	var err error
	if p.tokens, err = lexer.Lex(p.source); err != nil {
		panic(unreadable(err))
	}
	t := p.sequence()
	if p.tokens[0].Kind != lexer.EOF {
		p.unexpected()
	}
	return p, t
}

func (p *parser) next() lexer.Token {
	t := p.tokens[0]
	if len(p.tokens) > 1 {
		p.tokens = p.tokens[1:]
	}
	return t
}

// is reports whether the next token is an operator or a bracket.
func (p *parser) is(values ...string) bool { return isSign(p.tokens[0], values...) }

func isSign(t lexer.Token, values ...string) bool {
	return (t.Kind == lexer.Operator || t.Kind == lexer.Bracket) && slices.Contains(values, t.Value)
}

// accept consumes the next token if it is an operator or a bracket.
func (p *parser) accept(value string) bool {
	if !p.is(value) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(value string) {
	if !p.accept(value) {
		p.unexpected()
	}
}

func (p *parser) identifier() lexer.Token {
	if p.tokens[0].Kind != lexer.Identifier {
		p.unexpected()
	}
	return p.next()
}

func (p *parser) unexpected() { p.fail(p.tokens[0].Location, "unexpected token %v", p.tokens[0]) }

// fail refuses the expression, with a position.
func (p *parser) fail(at file.Location, format string, args ...any) {
	panic(unreadable((&file.Error{Location: at, Message: fmt.Sprintf(format, args...)}).Bind(p.source)))
}

// unsupported refuses a construct of expr-lang that is not in our language.
func unsupported(what string) error {
	return refuse("%s is not supported in expressions: write it in another way", what)
}

// make returns a term that consists of parts.
func (p *parser) make(at file.Location, t typ, eval evaluator, parts ...term) term {
	p.nodes++
	if p.nodes > maxNodes {
		panic(refuse("the expression has more than %d nodes: simplify it", maxNodes))
	}
	made := term{eval: eval, typ: t, at: at, size: 1}
	for _, part := range parts {
		made.size += part.size
	}
	return made
}

// constant returns the term of a literal.
func (p *parser) constant(at file.Location, t typ, v any) term {
	return p.make(at, t, func(*frame) any { return v })
}

// operation returns a term that evaluates its arguments, pays one unit and applies the operation.
func (p *parser) operation(at file.Location, t typ, do operation, args ...term) term {
	evaluators := make([]evaluator, len(args))
	for i, a := range args {
		evaluators[i] = a.eval
	}
	return p.make(at, t, func(f *frame) any {
		values := make([]any, len(evaluators))
		for i, eval := range evaluators {
			values[i] = eval(f)
		}
		f.meter.pay(1)
		return do(&f.meter, values)
	}, args...)
}

// sequence parses an expression, with a semicolon that may end the text.
func (p *parser) sequence() term {
	t := p.expression(0)
	if p.accept(";") && p.tokens[0].Kind != lexer.EOF {
		panic(unsupported("a sequence of expressions"))
	}
	return t
}

// expression parses operators that bind at least as tightly as a precedence.
func (p *parser) expression(precedence int) term {
	switch {
	case precedence == 0 && p.accept("let"):
		return p.let()
	case precedence == 0 && p.accept("if"):
		return p.conditionalIf()
	}
	left, previous := p.primary(), ""
	for p.tokens[0].Kind == lexer.Operator {
		negate, op := p.is("not"), p.tokens[0]
		if negate {
			if op = p.tokens[1]; !isSign(op, "contains", "matches", "startsWith", "endsWith", "in") {
				p.next()
				p.unexpected()
			}
		}
		binds, known := precedences[op.Value]
		if !known || binds < precedence {
			break
		}
		if negate {
			p.next()
		}
		p.next()
		if previous == "??" && op.Value != "??" && op.Value != "|" {
			p.fail(op.Location, "operators ?? and %s cannot be mixed without parentheses", op.Value)
		}
		switch op.Value {
		case "|":
			left = p.call(p.identifier(), left)
		case "<", ">", "<=", ">=":
			left = p.comparison(left, op)
		case "**", "^":
			left = p.binary(op, left, p.expression(binds))
		default:
			left = p.binary(op, left, p.expression(binds+1))
		}
		if negate {
			left = p.operation(op.Location, typ{kind: boolKind}, not, left)
		}
		previous = op.Value
	}
	if precedence == 0 {
		left = p.choice(left)
	}
	return left
}

// comparison parses a < b < c as a < b and b < c.
func (p *parser) comparison(left term, op lexer.Token) term {
	right, again := p.compared(op)
	all := p.binary(op, left, right)
	for p.is("<", ">", "<=", ">=") {
		op, left = p.next(), again
		right, again = p.compared(op)
		all = p.logic(op.Location, all, p.binary(op, left, right), true)
	}
	return all
}

// compared parses the right operand of a comparison. If another comparison follows, again is the value of the operand, which is
// evaluated only once.
func (p *parser) compared(op lexer.Token) (right, again term) {
	right = p.expression(precedences[op.Value] + 1)
	if !p.is("<", ">", "<=", ">=") {
		return right, term{}
	}
	slot, eval := p.slots, right.eval
	p.slots++
	right.eval = func(f *frame) any {
		f.locals[slot] = eval(f)
		return f.locals[slot]
	}
	return right, term{typ: right.typ, at: right.at, eval: func(f *frame) any { return f.locals[slot] }}
}

// let parses a declaration after its keyword, and the expression in which it is in scope.
func (p *parser) let() term {
	name := p.identifier()
	p.expect("=")
	value := p.expression(0)
	p.expect(";")
	_, declared := p.locals[name.Value]
	if declared || slices.Contains(variables, name.Value) || isFunction(name.Value) {
		p.fail(name.Location, "cannot redeclare %s", name.Value)
	}
	slot := p.slots
	p.slots++
	p.locals[name.Value] = local{slot, value.typ}
	body := p.sequence()
	delete(p.locals, name.Value)
	return p.make(name.Location, body.typ, func(f *frame) any {
		f.locals[slot] = value.eval(f)
		return body.eval(f)
	}, value, body)
}

// conditionalIf parses if a { b } else { c } after its first keyword.
func (p *parser) conditionalIf() term {
	cond := p.expression(0)
	then := p.block()
	p.expect("else")
	if p.accept("if") {
		return p.conditional(cond, then, p.conditionalIf())
	}
	return p.conditional(cond, then, p.block())
}

func (p *parser) block() term {
	p.expect("{")
	t := p.sequence()
	p.expect("}")
	return t
}

// choice parses ? b : c, or ?: c, after a condition.
func (p *parser) choice(t term) term {
	for p.accept("?") {
		if p.accept(":") {
			yes := term{typ: t.typ, eval: func(*frame) any { return true }} // t is not evaluated again
			t = p.conditional(t, yes, p.expression(0))
			continue
		}
		then := p.expression(0)
		p.expect(":")
		t = p.conditional(t, then, p.expression(0))
	}
	return t
}

func (p *parser) conditional(cond, then, otherwise term) term {
	if !cond.typ.maybe(boolKind) {
		p.fail(cond.at, "a condition must be a boolean, got %v", cond.typ)
	}
	return p.make(cond.at, either(then.typ, otherwise.typ), func(f *frame) any {
		if f.yes(cond.eval) {
			return then.eval(f)
		}
		return otherwise.eval(f)
	}, cond, then, otherwise)
}

func (p *parser) primary() term {
	t := p.tokens[0]
	if binds, ok := unaryPrecedences[t.Value]; ok && t.Kind == lexer.Operator {
		p.next()
		operand := p.expression(binds)
		return p.postfix(p.operation(t.Location, p.unaryType(t, operand.typ), unary[t.Value], operand))
	}
	switch {
	case p.accept("("):
		inner := p.sequence()
		p.expect(")")
		return p.postfix(inner)
	case p.loop != nil && p.is("#", "."):
		return p.postfix(p.pointer())
	case p.accept("::"):
		return p.postfix(p.call(p.identifier()))
	}
	return p.literal()
}

// pointer parses #, #index, or nothing before .name, in the predicate of a loop.
func (p *parser) pointer() term {
	at := p.tokens[0].Location
	if !p.accept("#") || p.tokens[0].Kind != lexer.Identifier {
		return p.make(at, p.loop.item, func(f *frame) any { return f.item })
	}
	if name := p.next().Value; name != "index" || p.loop.name != "map" {
		p.fail(at, "unknown pointer #%s", name)
	}
	return p.make(at, typ{kind: intKind}, func(f *frame) any { return f.index })
}

// literal parses a literal, a variable or a call.
func (p *parser) literal() term {
	t := p.next()
	switch {
	case t.Kind == lexer.Identifier:
		switch t.Value {
		case "true", "false":
			return p.constant(t.Location, typ{kind: boolKind}, t.Value == "true")
		case "nil":
			return p.constant(t.Location, typ{kind: nilKind}, nil)
		}
		if p.is("(") {
			return p.postfix(p.call(t))
		}
		return p.postfix(p.variable(t))
	case t.Kind == lexer.Number:
		return p.number(t)
	case t.Kind == lexer.String:
		return p.postfix(p.string(t))
	case t.Kind == lexer.Bytes:
		panic(unsupported("a literal of bytes"))
	case isSign(t, "["):
		return p.postfix(p.list(t))
	case isSign(t, "{"):
		return p.postfix(p.object(t))
	}
	p.fail(t.Location, "unexpected token %v", t)
	return term{}
}

func (p *parser) string(t lexer.Token) term {
	s := p.constant(t.Location, typ{kind: stringKind}, t.Value)
	s.text, s.start = &t.Value, t.Value
	return s
}

func (p *parser) number(t lexer.Token) term {
	digits, base := strings.ToLower(strings.ReplaceAll(t.Value, "_", "")), 10
	hex := strings.HasPrefix(digits, "0x")
	if !hex && strings.ContainsAny(digits, ".e") {
		f, err := strconv.ParseFloat(digits, 64)
		if err != nil || math.IsInf(f, 0) {
			p.fail(t.Location, "%s is not a number of 64 bits", t.Value)
		}
		return p.constant(t.Location, typ{kind: floatKind}, f)
	}
	if hex || strings.HasPrefix(digits, "0b") || strings.HasPrefix(digits, "0o") {
		base = 0
	}
	n, err := strconv.ParseInt(digits, base, strconv.IntSize)
	if err != nil {
		p.fail(t.Location, "%s is not an integer of 64 bits", t.Value)
	}
	return p.constant(t.Location, typ{kind: intKind}, int(n))
}

// variable reads a variable. An expression that reads steps as a whole may refer to any step.
func (p *parser) variable(t lexer.Token) term {
	if l, ok := p.locals[t.Value]; ok && !strings.HasPrefix(t.Value, "$") {
		return p.make(t.Location, l.typ, func(f *frame) any { return f.locals[l.slot] })
	}
	if !slices.Contains(variables, t.Value) {
		panic(refuse("unknown name %s: the variables are %s", configdoc.Show(t.Value), configdoc.List(variables)))
	}
	v := p.make(t.Location, typ{}, func(f *frame) any { return f.get(t.Value) })
	if v.steps = t.Value == "steps"; v.steps {
		p.whole++
	}
	return v
}

// list parses a list after its bracket.
func (p *parser) list(at lexer.Token) term {
	var items []term
	for len(items) == 0 || p.accept(",") {
		if p.is("]") {
			break
		}
		items = append(items, p.expression(0))
	}
	p.expect("]")
	return p.operation(at.Location, listType(items), listed, items...)
}

// object parses an object after its brace.
func (p *parser) object(at lexer.Token) term {
	var all []term
	for len(all) == 0 || p.accept(",") {
		if p.is("}") {
			break
		}
		all = append(all, p.key())
		p.expect(":")
		all = append(all, p.expression(0))
	}
	p.expect("}")
	return p.operation(at.Location, typ{kind: objectKind}, objectOf, all...)
}

// key parses the name of a member: a name, a number, a string, or an expression in parentheses.
func (p *parser) key() term {
	switch t := p.tokens[0]; {
	case t.Kind == lexer.Number || t.Kind == lexer.String || t.Kind == lexer.Identifier:
		return p.string(p.next())
	case !p.is("("):
		p.fail(t.Location, "the name of a member must be a name, a number, a string or an expression in parentheses, got %v", t)
	}
	return p.expression(0)
}

// postfix parses .name, ?.name, [index] and ?.[index] after a term. With the question mark, they mean the same and cost a node more:
// in a chain of names only once.
func (p *parser) postfix(t term) term {
	for p.is(".", "?.", "[") {
		op, chain := p.next(), t.chain
		optional := op.Value == "?."
		if op.Value == "[" || optional && p.accept("[") {
			t, chain = p.index(op.Location, t), false
		} else {
			t = p.memberName(t)
		}
		if optional && !chain {
			t.size++
		}
		t.chain = chain || optional
	}
	return t
}

// index parses an index after its bracket.
func (p *parser) index(at file.Location, of term) term {
	if p.is(":") {
		panic(unsupported("a slice of a list"))
	}
	index := p.expression(0)
	if p.is(":") {
		panic(unsupported("a slice of a list"))
	}
	p.expect("]")
	return p.member(at, of, index)
}

// memberName parses the name of a member after its dot.
func (p *parser) memberName(of term) term {
	name := p.next()
	if name.Kind != lexer.Identifier && (name.Kind != lexer.Operator || !isWord(name.Value)) {
		p.fail(name.Location, "expected the name of a member")
	}
	if p.is("(") {
		panic(noFunction(name.Value))
	}
	return p.member(name.Location, of, p.string(name))
}

// isWord reports whether an operator is a word, which may be the name of a member.
func isWord(operator string) bool { return unicode.IsLetter(rune(operator[0])) }

// member records the step that steps.NAME refers to.
func (p *parser) member(at file.Location, of, property term) term {
	if of.steps && property.text != nil {
		p.whole--
		p.mentions[*property.text] = true
	}
	return p.operation(at, p.memberType(at, of.typ, property), get, of, property)
}
