package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/types"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/configdoc"
	"github.com/holdfast-go/holdfast/internal/strictjson"
)

// Limits of expressions.
const (
	MaxExpression = 4096 // characters of one
	maxNodes      = 1000 // parts of one
	// budget is what one may do, in units of about a tenth of a microsecond: an
	// operation is one, and so are each turn of a loop and each 128 bytes of a text.
	budget = 250_000
	// maxText is the longest text, in bytes, that one may make, and what it may give.
	maxText = strictjson.MaxBytes
)

// Env is what an expression sees: each is an object of JSON, or empty.
type Env struct {
	Input json.RawMessage // input: the run's
	State json.RawMessage // state: the run's
	Steps json.RawMessage // steps: by name, output, status, error and visit of each
	Run   json.RawMessage // run: id, key and more
}

// Expr is an expression that has been read. It is safe for concurrent use.
//
// An expression is of the language of github.com/expr-lang/expr, with these
// differences. It is deterministic: there is no clock and no chance in it, and keys and
// values of an object come in the order of their names. What is not there is nil, and so
// is what is not there in nil, so that input.a.b is nil if input has no a, and items[9]
// is nil if there are fewer; other operators on nil are mistakes. Whole numbers are of 64
// bits, and a sum or product that has no room there is a mistake, not another number.
//
// The library reads and checks the text. What it means is ours, see [builder]: each
// operation is paid for out of a [meter], and loops are not nested, so that an expression
// ends soon, and at the same place on every node.
type Expr struct {
	eval     part
	locals   int             // how many variables it declares
	mentions map[string]bool // the steps that it looks at
	all      bool            // it may look at any step
}

// compiled caches expressions by their text. When it is full it begins anew: an expression
// takes less than a millisecond to compile, and few programs have a thousand of them.
var compiled = struct {
	sync.Mutex
	byText map[string]*Expr
}{byText: make(map[string]*Expr)}

const maxCompiled = 1000

// Compile reads an expression. Anything that is wrong with it is a [fault.Validation].
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
	defer caught(&err)
	switch n := utf8.RuneCountInString(text); {
	case strings.TrimSpace(text) == "":
		return nil, refuse("the expression is empty: write one")
	case n > MaxExpression:
		return nil, refuse("the expression has %d characters, and %d are allowed: shorten it", n, MaxExpression)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return nil, refuse("the expression has a character that is no text: take it out")
	}
	parsed, err := checker.ParseCheck(text, newConfig())
	if err != nil {
		return nil, unreadable(err)
	}
	b := builder{locals: make(map[string]int), mentions: make(map[string]bool)}
	eval := b.build(parsed.Node)
	return &Expr{eval: eval, locals: len(b.locals), mentions: b.mentions, all: b.all}, nil
}

// variables are the names that an expression may use.
var variables = []string{"input", "run", "state", "steps"}

// newConfig says which variables and functions there are.
func newConfig() *conf.Config {
	c := conf.CreateNew()
	env := types.Map{}
	for _, name := range variables {
		env[name] = types.Any
	}
	c.WithEnv(env)
	c.MaxNodes = maxNodes
	for name := range c.Builtins {
		if loops[name] == nil && functions[name].do == nil {
			delete(c.Builtins, name)
		}
	}
	return c
}

// Mentions says whether the expression may look at a step.
func (e *Expr) Mentions(step string) bool { return e.all || e.mentions[step] }

// Eval works an expression out. A mistake is a [fault.Validation].
func (e *Expr) Eval(env Env) (json.RawMessage, error) {
	v, err := e.value(newScope(env))
	if err != nil {
		return nil, err
	}
	return result(v)
}

// True works out an expression that says yes or no. Any other result is a
// [fault.Validation], whose field "kind" says what it was.
func (e *Expr) True(env Env) (bool, error) {
	v, err := e.value(newScope(env))
	if err != nil {
		return false, err
	}
	yes, ok := v.(bool)
	if !ok {
		return false, refuse("the expression is %s, and true or false is wanted: compare it with something", kindOf(v)).With("kind", kindOf(v))
	}
	return yes, nil
}

// value works an expression out in a scope.
func (e *Expr) value(sc *scope) (v any, err error) {
	defer caught(&err)
	return e.eval(&frame{scope: sc, locals: make([]any, e.locals)}), nil
}

// caught turns a panic into an error: a mistake in the expression, or a bug.
func caught(err *error) {
	switch r := recover().(type) {
	case nil:
	case *fault.Error:
		*err = r
	default:
		*err = refuse("the expression cannot be worked out: write it more plainly").Wrap(fmt.Errorf("panic: %v", r))
	}
}

func refuse(format string, args ...any) *fault.Error {
	return fault.New(fault.Validation, format, args...)
}

// unreadable tells what is wrong with a text, and where.
func unreadable(err error) error {
	if f, ok := errors.AsType[*file.Error](err); ok {
		if name, unknown := strings.CutPrefix(f.Message, "unknown name "); unknown {
			return refuse("there is no %s: there are %s", configdoc.Show(name), configdoc.List(variables))
		}
		return refuse("%s (line %d, column %d of the expression): correct it", f.Message, f.Line, f.Column+1)
	}
	return refuse("the expression cannot be read: correct it").Wrap(err)
}
