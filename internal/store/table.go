package store

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/fault"
)

// Table is a table of the user's own that holds the entities of a lifecycle: its
// name, which may be schema.name, and its columns. Workspace is "" where the whole
// table is one workspace's.
type Table struct {
	Name      string
	ID        string
	Status    string
	Version   string
	Workspace string
}

// Columns are the names of the columns that there are.
func (t Table) Columns() []string {
	all := []string{t.ID, t.Status, t.Version}
	if t.Workspace != "" {
		all = append(all, t.Workspace)
	}
	return all
}

// Check looks at the names alone: those of the columns, and those that the table's name is made of. A name has up to longest
// bytes; same says whether two are the same column's.
func (t Table) Check(longest int, same func(a, b string) bool, names ...string) error {
	columns := t.Columns()
	if slices.Contains(append(columns[:3:3], names[len(names)-1]), "") {
		return fault.New(fault.Validation, "the table %q needs a name, and its columns for id, status and version named", t.Name)
	}
	for _, n := range slices.Concat(columns, names) {
		if len(n) > longest || !utf8.ValidString(n) || strings.ContainsRune(n, 0) {
			return fault.New(fault.Validation, "%.80q cannot be a name: it has up to %d bytes, and no NUL", n, longest)
		}
	}
	for i, n := range columns {
		if slices.ContainsFunc(columns[:i], func(other string) bool { return same(n, other) }) {
			return fault.New(fault.Validation, "the column %q of %q cannot be used for two things", n, t.Name)
		}
	}
	return nil
}

// UniqueBy returns the columns by which a row is known, of the names that the database has for them, and whether one of the unique
// keys keeps two rows from being the same by them.
func UniqueBy(workspace, id string, keys [][]string) (columns []string, unique bool) {
	columns = []string{id}
	if workspace != "" {
		columns = []string{workspace, id}
	}
	sorted := slices.Sorted(slices.Values(columns))
	return columns, slices.ContainsFunc(keys, func(key []string) bool {
		slices.Sort(key)
		return slices.Equal(key, []string{id}) || slices.Equal(key, sorted)
	})
}

// UserTables is a store that can work on tables of the user's own.
type UserTables interface {
	// OpenTable checks that a table is there and has the columns, and makes its
	// statements. The error says what is missing, and what to do.
	OpenTable(context.Context, Table) (UserTable, error)
}

// UserRow is a row of a table of the user's own. Data is the whole row, a JSON
// object by the names of the columns.
type UserRow struct {
	Workspace string // "" where the table has no such column
	ID        string
	Status    string
	Version   int64
	Data      []byte
}

// UserTable is a table of the user's own. Every write of a status is conditional on
// the one that it leaves.
type UserTable interface {
	// Read returns a row, through a transaction or, if conn is nil, outside of
	// any.
	Read(ctx context.Context, conn Conn, workspace, id string) (row UserRow, found bool, err error)
	// Move changes the status of a row that has the one named, and the version
	// if one is named, and adds one to its version, which it returns. Where the
	// row is not so, nothing is changed, and moved is false.
	Move(ctx context.Context, conn Conn, workspace, id, from, to string, want *int64) (version int64, moved bool, err error)
	// In returns rows that are in one of some statuses, without their data.
	In(ctx context.Context, statuses []string, limit int) ([]UserRow, error)
}
