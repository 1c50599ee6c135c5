package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/expr-lang/expr/file"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Limits of expressions.
const (
	MaxExpression = 4096 // characters of an expression
	maxNodes      = 1000 // nodes of an expression
	// budget limits the work of an expression, in units of about a tenth of a microsecond. An
	// operation costs one, and so does each 128 bytes of a string, and eight nodes. An iteration of a loop
	// costs one, plus one per eight nodes of its predicate. For matches see [pattern.matches].
	budget = 250_000
	// maxText limits the strings that an expression may create, and its result, in bytes.
	maxText = strictjson.MaxBytes
)

// Env holds the variables of an expression. Each is a JSON object, or empty.
type Env struct {
	Input json.RawMessage // input: the run's input
	State json.RawMessage // state: the run's state
	Steps json.RawMessage // steps: output, status, error and visit by step name
	Run   json.RawMessage // run: id and key
}

// Expr is a compiled expression. It is safe for concurrent use.
//
// The language is that of github.com/expr-lang/expr, with these differences. It is
// deterministic: there is no clock and no randomness, and the keys and values of an object come
// in the order of their names. A missing member or item is nil, and so is any member of nil:
// input.a.b is nil if input has no a, and items[9] is nil if there are fewer items. Of the
// operators, only ==, !=, ?? and in accept nil; with any other, nil is an error. Integers have
// 64 bits, and an overflow is an error, not another number.
//
// The library divides the text into tokens. The rest is our own, see [parser]: each
// operation is paid for from a [meter], and loops cannot be nested, so that an expression ends
// soon, and at the same point on every node.
type Expr struct {
	eval     evaluator
	size     int             // number of nodes
	locals   int             // the length of frame.locals
	mentions map[string]bool // the steps that it refers to
	all      bool            // it may refer to any step
	start    string          // the text with which the result begins, as far as it is literal
}

// compiled caches expressions by their text. It is cleared when it is full: an expression takes
// less than a millisecond to compile, and few programs have a thousand of them.
var compiled = struct {
	sync.Mutex
	byText map[string]*Expr
}{byText: make(map[string]*Expr)}

const maxCompiled = 1000

// Compile compiles an expression. An error is a [fault.Validation].
func Compile(text string) (*Expr, error) {
	compiled.Lock()
	e := compiled.byText[text]
	compiled.Unlock()
	if e != nil {
		return e, nil
	}
	e, err := compile(text)
	if err != nil {
		return nil, err
	}
	compiled.Lock()
	defer compiled.Unlock()
	if len(compiled.byText) >= maxCompiled {
		clear(compiled.byText)
	}
	compiled.byText[strings.Clone(text)] = e
	return e, nil
}

func compile(text string) (e *Expr, err error) {
	defer catchPanic(&err)
	switch n := utf8.RuneCountInString(text); {
	case strings.TrimSpace(text) == "":
		return nil, refuse("the expression is empty: write one, or remove the field")
	case n > MaxExpression:
		return nil, refuse("the expression has %d characters, but the limit is %d: shorten it", n, MaxExpression)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return nil, refuse("the expression contains invalid UTF-8 or a NUL character: remove it")
	}
	p, t := parse(text)
	return &Expr{eval: t.eval, size: t.size, locals: p.slots, mentions: p.mentions, all: p.whole > 0, start: t.start}, nil
}

// variables are the variables of expressions.
var variables = []string{"input", "run", "state", "steps"}

// Mentions reports whether the expression may refer to a step.
func (e *Expr) Mentions(step string) bool { return e.all || e.mentions[step] }

// Eval evaluates an expression. An error is a [fault.Validation].
func (e *Expr) Eval(env Env) (json.RawMessage, error) {
	v, err := e.value(newScope(env))
	if err != nil {
		return nil, err
	}
	return result(v)
}

// True evaluates an expression that must return a boolean. Any other result is a
// [fault.Validation] whose field "kind" has the kind of the result.
func (e *Expr) True(env Env) (bool, error) {
	v, err := e.value(newScope(env))
	if err != nil {
		return false, err
	}
	yes, ok := v.(bool)
	if !ok {
		return false, refuse("the expression must return true or false, got %s: compare it with a value", kindOf(v)).With("kind", kindOf(v))
	}
	return yes, nil
}

// value evaluates an expression in a scope. It pays for the nodes that pay nothing themselves, as a loop does for each item.
func (e *Expr) value(sc *scope) (v any, err error) {
	defer catchPanic(&err)
	sc.meter.pay(e.size / 8)
	return e.eval(&frame{scope: sc, locals: make([]any, e.locals)}), nil
}

// catchPanic turns a panic into an error: an error of the expression, or a bug.
func catchPanic(err *error) {
	switch r := recover().(type) {
	case nil:
	case *fault.Error:
		*err = r
	default:
		*err = refuse("the expression cannot be evaluated: simplify it").Wrap(fmt.Errorf("panic: %v", r))
	}
}

func refuse(format string, args ...any) *fault.Error {
	return fault.New(fault.Validation, format, args...)
}

// unreadable returns the error for a text that cannot be compiled, with its position.
func unreadable(err error) error {
	if f, ok := errors.AsType[*file.Error](err); ok {
		return refuse("%s (line %d, column %d of the expression): correct it", f.Message, f.Line, f.Column+1)
	}
	return refuse("the expression cannot be parsed: correct it").Wrap(err)
}
