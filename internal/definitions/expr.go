package definitions

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/checker"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/strict"
	"github.com/holdfast-go/holdfast/internal/tree"
)

// Limits of expressions.
const (
	MaxExpression = 4096 // characters of one
	maxNodes      = 1000 // parts of one
	// budget is what one may do, in units of about a tenth of a microsecond: an
	// operation is one, and so are each turn of a loop and each 128 bytes of a text.
	budget = 250_000
	// maxText is the longest text, in bytes, that one may make, and what it may give.
	maxText = strict.MaxBytes
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
// A virtual machine that runs a program cannot be stopped, so an expression has a
// budget: all that takes time, or memory, goes through [meter], and loops are not nested.
type Expr struct {
	text     string
	program  *vm.Program
	uses     []string        // the variables that it looks at
	mentions map[string]bool // the steps that it looks at
	all      bool            // it may look at any step
}

// String is the text of the expression.
func (e *Expr) String() string { return e.text }

// compiled keeps programs by their text. When it is full it begins anew: a program takes
// less than a millisecond to make, and few have a thousand of them.
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
	c := inspection{uses: make(map[string]bool), mentions: make(map[string]bool)}
	if err := c.node(parsed.Node, false); err != nil {
		return nil, err
	}
	program, err := expr.Compile(text, func(into *conf.Config) { *into = *newConfig() }, expr.Function(doFunc, do), expr.Patch(&patcher{}))
	if err != nil {
		return nil, unreadable(err)
	}
	return &Expr{text: text, program: program, uses: slices.Sorted(maps.Keys(c.uses)), mentions: c.mentions, all: c.all}, nil
}

// variables are the names that an expression may use.
var variables = []string{"input", "run", "state", "steps"}

// meterVar is the variable under which a program finds its meter. No expression can name
// it: see [inspection.identifier].
const meterVar = "$meter"

// newConfig says which variables and functions there are.
func newConfig() *conf.Config {
	c := conf.CreateNew()
	env := types.Map{meterVar: types.Any}
	for _, name := range variables {
		env[name] = types.Any
	}
	c.WithEnv(env)
	c.MaxNodes = maxNodes
	c.Optimize = false
	for name := range c.Builtins {
		if !loops[name] && !known(name) {
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

// value runs the program.
func (e *Expr) value(sc *scope) (v any, err error) {
	defer caught(&err)
	env := map[string]any{meterVar: &sc.meter}
	for _, name := range e.uses {
		if env[name], err = sc.get(name); err != nil {
			return nil, err
		}
	}
	machine := vm.VM{MemoryBudget: budget}
	v, err = machine.Run(e.program, env)
	if err != nil {
		return nil, failed(err)
	}
	return v, nil
}

// caught makes an error of a panic of the library.
func caught(err *error) {
	if r := recover(); r != nil {
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
			return refuse("there is no %s: there are %s", tree.Show(name), tree.List(variables))
		}
		return refuse("%s (line %d, column %d of the expression): correct it", f.Message, f.Line, f.Column+1)
	}
	return refuse("the expression cannot be read: correct it").Wrap(err)
}

// failed tells what went wrong at run time.
func failed(err error) error {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f
	}
	if f, ok := errors.AsType[*file.Error](err); ok && f.Message == "memory budget exceeded" {
		return errBudget
	}
	return refuse("the expression cannot be worked out: a value is not of the kind that is wanted").Wrap(err)
}
