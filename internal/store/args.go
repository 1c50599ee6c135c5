package store

import "fmt"

// kind is the type of a column of arguments.
type kind uint8

const (
	kindShard kind = iota
	kindID
	kindInt
	kindText
)

// Args collects the arguments of one or several commands of one verb, column
// by column. A binder calls the same methods in the same order for every
// member; PostgreSQL takes the columns as arrays, SQLite takes a member's
// values. The zero value is ready. Not safe for concurrent use.
type Args struct {
	kinds   []kind
	values  []any // row after row; nil is NULL
	next    int
	members int

	// children are rows that belong to a member, such as the events of an
	// append; owners tells to which member, counted from 1.
	children *Args
	owners   []int64
}

// Int adds a whole number.
func (a *Args) Int(v int64) { a.put(kindInt, v) }

// Text adds a string.
func (a *Args) Text(v string) { a.put(kindText, v) }

// MaybeInt adds a whole number, or NULL for nil.
func (a *Args) MaybeInt(v *int64) {
	if v == nil {
		a.put(kindInt, nil)
		return
	}
	a.put(kindInt, *v)
}

// MaybeText adds a string, or NULL for the empty one.
func (a *Args) MaybeText(v string) {
	if v == "" {
		a.put(kindText, nil)
		return
	}
	a.put(kindText, v)
}

// Child begins a row that belongs to the member at hand and returns the
// arguments to bind it to.
func (a *Args) Child() *Args {
	if a.children == nil {
		a.children = new(Args)
	}
	a.children.end()
	a.children.begin()
	a.owners = append(a.owners, int64(a.members))
	return a.children
}

func (a *Args) begin() {
	if a.values == nil { // most commands have fewer columns than this
		a.kinds, a.values = make([]kind, 0, 16), make([]any, 0, 16)
	}
	a.members++
	a.next = 0
}

// end panics if a member bound other columns than the first one did: that
// would shift values into the wrong columns, silently.
func (a *Args) end() {
	if a.members > 0 && a.next != len(a.kinds) {
		panic(fmt.Sprintf("store: a member bound %d columns where the first bound %d", a.next, len(a.kinds)))
	}
	if a.children != nil {
		a.children.end()
	}
}

func (a *Args) put(k kind, v any) {
	if a.members <= 1 {
		a.kinds = append(a.kinds, k)
	} else if a.next >= len(a.kinds) || a.kinds[a.next] != k {
		panic(fmt.Sprintf("store: column %d of member %d has another type than before", a.next+1, a.members))
	}
	a.values = append(a.values, v)
	a.next++
}

// Members is the number of commands bound.
func (a *Args) Members() int { return a.members }

// Values returns the arguments of one member, counted from 0.
func (a *Args) Values(member int) []any {
	n := len(a.kinds)
	return a.values[member*n : (member+1)*n : (member+1)*n]
}

// Children returns the rows that belong to a member, each as its own values.
func (a *Args) Children(member int) [][]any {
	var rows [][]any
	for i, owner := range a.owners {
		if owner == int64(member)+1 {
			rows = append(rows, a.children.Values(i))
		}
	}
	return rows
}

// Arrays returns the columns as arrays, for one statement over all members:
// the members' columns, then, if there are child rows, the column of their
// owners (counted from 1) and their own.
func (a *Args) Arrays() []any {
	arrays := a.columns(nil)
	if a.children != nil {
		arrays = append(arrays, a.owners)
		arrays = a.children.columns(arrays)
	}
	return arrays
}

// Scalars returns the arguments of a lone member as scalars, and the columns of
// its child rows as arrays. An id is a plain array of bytes: drivers would write
// an [ID] out as text and read it back.
func (a *Args) Scalars() []any {
	values := make([]any, len(a.kinds), len(a.kinds)+8)
	for i, v := range a.Values(0) {
		if id, ok := v.(ID); ok {
			v = [16]byte(id)
		}
		values[i] = v
	}
	if a.children != nil {
		values = a.children.columns(values)
	}
	return values
}

func (a *Args) columns(into []any) []any {
	for c, k := range a.kinds {
		switch k {
		case kindShard:
			into = append(into, column(a, c, func(v any) int16 { return int16(v.(int64)) }))
		case kindID:
			into = append(into, column(a, c, func(v any) [16]byte { return v.(ID) }))
		case kindInt:
			into = append(into, column(a, c, maybe[int64]))
		case kindText:
			into = append(into, column(a, c, maybe[string]))
		}
	}
	return into
}

func column[T any](a *Args, c int, as func(any) T) []T {
	col := make([]T, a.members)
	for m := range col {
		col[m] = as(a.values[m*len(a.kinds)+c])
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
