package store

import (
	"fmt"
	"slices"
)

// Kind is the type of a column of arguments.
type Kind uint8

// The kinds of columns.
const (
	ShardKind Kind = iota
	IDKind
	IntKind
	TextKind
)

// Column is one argument of a verb: its name in the SQL and its type.
type Column struct {
	Name string
	Kind Kind
}

// Args collects the arguments of one or several commands of one verb, its members, column by column. A binder calls the
// same methods in the same order for every member. PostgreSQL takes the columns as arrays, SQLite takes the values
// of one member. The zero value is ready to use. Not safe for concurrent use.
type Args struct {
	cols    *Columns
	columns []Column // columns of the members, or of the child rows
	values  []any    // row by row; nil is NULL
	next    int      // index of the column that is bound next
	members int
	probing bool // record the columns that the binder names

	// children are rows that belong to a member, such as the events of an append; owners holds the member of each,
	// counted from 1.
	children *Args
	owners   []int64
}

// Columns are the arguments of a verb in binding order: shard and workspace; for a write, command, which is its id; the
// binder's own; for a verb that writes events, revision and marks (see [Command.Known]); and those of its child rows.
type Columns struct {
	Members, Children []Column
	Emits             bool // Members ends with revision and marks
}

// invalidName returns a column name that is reserved, duplicate or malformed.
func (c *Columns) invalidName() (name string, invalid bool) {
	seen := map[string]bool{"revision": true, "marks": true, "member": true, "owner": true, "now": true}
	for _, col := range slices.Concat(c.Members, c.Children) {
		if seen[col.Name] || !isColumnName(col.Name) {
			return col.Name, true
		}
		seen[col.Name] = true
	}
	return "", false
}

// isColumnName reports whether a name has letters and, after the first, underscores. It is not a regular expression because every
// start of a program checks hundreds of names.
func isColumnName(name string) bool {
	for i, c := range name {
		if (c < 'a' || c > 'z') && (c != '_' || i == 0) {
			return false
		}
	}
	return name != ""
}

// Common reports whether a name is one of the columns that no binder names.
func Common(name string) bool {
	switch name {
	case "shard", "workspace", "command", "revision", "marks":
		return true
	}
	return false
}

// Int adds a whole number.
func (a *Args) Int(name string, v int64) { a.put(name, IntKind, v) }

// Text adds a string.
func (a *Args) Text(name, v string) { a.put(name, TextKind, v) }

// MaybeInt adds a whole number, or NULL for nil.
func (a *Args) MaybeInt(name string, v *int64) {
	if v == nil {
		a.put(name, IntKind, nil)
		return
	}
	a.put(name, IntKind, *v)
}

// MaybeText adds a string, or NULL for "".
func (a *Args) MaybeText(name, v string) {
	if v == "" {
		a.put(name, TextKind, nil)
		return
	}
	a.put(name, TextKind, v)
}

// Rows binds child rows of the current member, such as the events of an append. n counts from 0.
func Rows[T any](a *Args, rows []T, bind func(n int, row T, args *Args)) {
	if a.probing {
		rows = make([]T, 1)
	}
	for n, row := range rows {
		bind(n, row, a.child())
	}
	if a.children != nil {
		a.children.end()
	}
}

// child begins a child row of the current member.
func (a *Args) child() *Args {
	if a.children == nil {
		a.children = &Args{probing: a.probing}
		if a.cols != nil {
			a.children.columns = a.cols.Children
		}
	}
	a.children.end()
	a.children.begin()
	a.owners = append(a.owners, int64(a.members))
	return a.children
}

func (a *Args) begin() {
	if a.values == nil {
		a.values = make([]any, 0, len(a.columns))
	}
	a.members++
	a.next = 0
}

// end panics if a member bound fewer columns than its verb has, which would silently shift values into the
// wrong columns.
func (a *Args) end() {
	if a.members > 0 && a.next != len(a.columns) {
		panic(fmt.Sprintf("store: a member bound %d columns of %d", a.next, len(a.columns)))
	}
}

// put binds a value. It panics if the name or type differs from the column's, because a binder that omits a
// column would silently shift values into the wrong ones.
func (a *Args) put(name string, k Kind, v any) {
	switch {
	case a.probing:
		a.columns = append(a.columns, Column{name, k})
	case a.next >= len(a.columns) || a.columns[a.next].Kind != k || a.columns[a.next].Name != name:
		panic(fmt.Sprintf("store: member %d binds %q as column %d: its verb has another there", a.members, name, a.next+1))
	}
	a.values = append(a.values, v)
	a.next++
}

// Members returns the number of commands bound.
func (a *Args) Members() int { return a.members }

// Values returns the arguments of one member, counted from 0.
func (a *Args) Values(member int) []any {
	n := len(a.columns)
	return a.values[member*n : (member+1)*n : (member+1)*n]
}

// Children returns the child rows of a member, each as its values.
func (a *Args) Children(member int) [][]any {
	var rows [][]any
	for i, owner := range a.owners {
		if owner == int64(member)+1 {
			rows = append(rows, a.children.Values(i))
		}
	}
	return rows
}

// Arrays returns the columns as arrays, for one statement over all members: the members' columns, then, if
// there are child rows, their owners (counted from 1) and their columns.
func (a *Args) Arrays() []any {
	arrays := a.arrays(nil)
	if a.children != nil {
		arrays = append(arrays, a.owners)
		arrays = a.children.arrays(arrays)
	}
	return arrays
}

// Scalars returns the arguments of a single member as scalars, and the columns of its child rows as arrays. An
// id becomes a plain byte array, because drivers would encode an [ID] as text.
func (a *Args) Scalars() []any {
	values := make([]any, len(a.columns), len(a.columns)+8)
	for i, v := range a.Values(0) {
		if id, ok := v.(ID); ok {
			v = [16]byte(id)
		}
		values[i] = v
	}
	if a.children != nil {
		values = a.children.arrays(values)
	}
	return values
}

func (a *Args) arrays(into []any) []any {
	for c, col := range a.columns {
		switch col.Kind {
		case ShardKind:
			into = append(into, column(a, c, func(v any) int16 { return int16(v.(int64)) }))
		case IDKind:
			into = append(into, column(a, c, func(v any) [16]byte { return v.(ID) }))
		case IntKind:
			into = append(into, column(a, c, maybe[int64]))
		case TextKind:
			into = append(into, column(a, c, maybe[string]))
		}
	}
	return into
}

func column[T any](a *Args, c int, as func(any) T) []T {
	col := make([]T, a.members)
	for m := range col {
		col[m] = as(a.values[m*len(a.columns)+c])
	}
	return col
}

func maybe[T any](v any) *T {
	if v == nil {
		return nil
	}
	t := v.(T)
	return &t
}
