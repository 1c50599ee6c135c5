package workflow

import (
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser/lexer"
)

// kind is a set of kinds of values, as far as they are known before an expression is evaluated. 0 is an unknown kind: only
// evaluation shows whether it fits.
type kind uint16

const (
	nilKind kind = 1 << iota
	boolKind
	intKind
	floatKind
	stringKind
	listKind
	stringsKind // a list of strings, as [splitText] returns it
	objectKind

	numberKind = intKind | floatKind
	listsKind  = listKind | stringsKind
)

// typ is the type of a term. The zero value is an unknown type.
type typ struct {
	kind
	of *typ // the type of the items of a list; nil if it is unknown
}

// String returns the type in words, as [kindOf] does for values.
func (t typ) String() string {
	switch {
	case t.kind == 0:
		return "an unknown value"
	case t.kind == nilKind:
		return "nil"
	case t.kind == boolKind:
		return "a boolean"
	case t.kind == stringKind:
		return "a string"
	case t.kind == objectKind:
		return "an object"
	case t.kind == intKind:
		return "an integer"
	case t.kind&listsKind != 0:
		return "a list"
	}
	return "a number"
}

// is reports whether the type is known to be one of the kinds.
func (t typ) is(k kind) bool { return t.kind&k != 0 }

// maybe reports whether the type is one of the kinds, or unknown.
func (t typ) maybe(k kind) bool { return t.kind == 0 || t.is(k) }

// item returns the type of the items of a list.
func (t typ) item() typ {
	switch {
	case t.kind == stringsKind:
		return typ{kind: stringKind}
	case t.of != nil:
		return *t.of
	}
	return typ{}
}

func listOfType(t typ) typ { return typ{listKind, &t} }

// listType returns the type of a list of terms. The type of its items is known if all have the same kind.
func listType(items []term) typ {
	if len(items) == 0 {
		return typ{kind: listKind}
	}
	last := items[len(items)-1].typ
	for _, x := range items {
		if x.typ.kind != last.kind {
			return typ{kind: listKind}
		}
	}
	return listOfType(last)
}

// either returns the type of a value that has one of two types.
func either(a, b typ) typ {
	switch {
	case a.kind == nilKind:
		return b
	case b.kind == nilKind:
		return a
	case a.kind != b.kind:
		return typ{}
	case a.kind == listKind && a.item().kind != b.item().kind:
		return typ{kind: listKind}
	}
	return a
}

// both reports whether two types are both of one of the kinds, as far as they are known.
func both(a, b typ, kinds ...kind) bool {
	for _, k := range kinds {
		if a.maybe(k) && b.maybe(k) {
			return true
		}
	}
	return false
}

// comparable reports whether two types may have equal values.
func comparable(a, b typ) bool {
	return a.kind&b.kind != 0 || a.maybe(nilKind) || b.maybe(nilKind) || a.is(numberKind) && b.is(numberKind) || a.is(listsKind) && b.is(listsKind)
}

func (p *parser) unaryType(op lexer.Token, t typ) typ {
	want, result := numberKind, t
	if op.Value == "not" || op.Value == "!" {
		want, result = boolKind, typ{kind: boolKind}
	}
	if !t.maybe(want) {
		p.fail(op.Location, "%s cannot be applied to %v", op.Value, t)
	}
	return result
}

// binaryType returns the type of the result of an operator.
func (p *parser) binaryType(op lexer.Token, l, r typ) typ {
	known := l.kind != 0 && r.kind != 0
	fits, result := true, typ{kind: boolKind}
	switch op.Value {
	case "==", "!=":
		fits = comparable(l, r)
	case "or", "||", "and", "&&":
		fits = both(l, r, boolKind)
	case "<", ">", "<=", ">=":
		fits = both(l, r, numberKind, stringKind)
	case "+", "-", "*":
		if fits = both(l, r, numberKind) || op.Value == "+" && both(l, r, stringKind); !known {
			result = typ{}
		} else if result = l; l.kind == intKind {
			result = r
		}
	case "/", "**", "^":
		fits, result = both(l, r, numberKind), typ{kind: floatKind}
	case "%":
		fits, result = both(l, r, intKind), typ{kind: intKind}
	case "..":
		fits, result = both(l, r, intKind), listOfType(typ{kind: intKind})
	case "in":
		switch {
		case r.is(objectKind):
			fits = l.maybe(stringKind)
		case r.is(listsKind):
			fits = comparable(l, r.item())
		default:
			fits = r.kind == 0 || r.is(stringKind) && l.kind == 0
		}
	case "matches", "contains", "startsWith", "endsWith":
		fits = both(l, r, stringKind)
	case "??":
		if result = either(l, r); l.kind == listKind && r.kind == listKind {
			result = l
		}
	}
	if !fits {
		p.fail(op.Location, "%s cannot be applied to mismatched types: %v and %v", op.Value, l, r)
	}
	return result
}

// memberType returns the type of a member of an object, or of an item of a list.
func (p *parser) memberType(at file.Location, of typ, property term) typ {
	switch {
	case of.kind == 0:
		return typ{}
	case of.is(objectKind) && property.typ.maybe(stringKind):
		return typ{}
	case of.is(listsKind) && property.typ.maybe(intKind):
		return of.item()
	case of.is(objectKind | listsKind):
		p.fail(property.at, "%v has no member with a name or index that is %v", of, property.typ)
	}
	p.fail(at, "%v has no members", of)
	return typ{}
}

// callType checks the types of arguments, and returns the type of the result.
func (p *parser) callType(name string, fn function, args []term) typ {
	for i, a := range args {
		if !a.typ.maybe(fn.takes[min(i, len(fn.takes)-1)]) {
			p.fail(a.at, "%s cannot be called with %v", name, a.typ)
		}
	}
	switch first := args[0].typ; name {
	case "first", "last":
		if first.kind == stringsKind {
			return typ{kind: stringKind}
		}
	case "take":
		return typ{kind: first.kind}
	case "abs":
		return first
	case "min", "max":
		for _, a := range args {
			if !a.typ.is(numberKind) {
				return typ{}
			}
		}
		return first
	}
	return typ{kind: fn.gives}
}

// loopType returns the type of the result of a loop, for the types of an item and of what its predicate returns.
func loopType(name string, item, each typ) typ {
	switch name {
	case "filter":
		return listOfType(item)
	case "map":
		return listOfType(each)
	case "find", "findLast":
		return item
	case "sum":
		return each
	case "count", "findIndex":
		return typ{kind: intKind}
	}
	return typ{kind: boolKind}
}
