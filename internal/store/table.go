package store

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/fault"
)

// Table names a user's table that holds the entities of a lifecycle: its name, which may be schema.name, and
// its columns. Workspace is "" if the table belongs to one workspace.
type Table struct {
	Name      string
	ID        string
	Status    string
	Version   string
	Workspace string
	Write     []string // further columns that may be written
}

// Columns returns the names of the configured columns, without those of Write.
func (t Table) Columns() []string {
	all := []string{t.ID, t.Status, t.Version}
	if t.Workspace != "" {
		all = append(all, t.Workspace)
	}
	return all
}

// Check validates the column names and the parts of the table's name, without reading the database. A name has
// at most longest bytes; same reports whether two names refer to the same column.
func (t Table) Check(longest int, same func(a, b string) bool, names ...string) error {
	columns := append(t.Columns(), t.Write...)
	if slices.Contains(append(columns[:3:3], names[len(names)-1]), "") {
		return fault.New(fault.Validation, "table %q: set a name and the columns for id, status and version", t.Name)
	}
	for _, n := range slices.Concat(columns, names) {
		if len(n) > longest || !utf8.ValidString(n) || strings.ContainsRune(n, 0) {
			return fault.New(fault.Validation, "%.80q is not a valid table or column name: use at most %d bytes of UTF-8 without NUL", n, longest)
		}
	}
	for i, n := range columns {
		if slices.ContainsFunc(columns[:i], func(other string) bool { return same(n, other) }) {
			return fault.New(fault.Validation, "column %q of table %q is configured for two purposes: use a separate column for each", n, t.Name)
		}
	}
	return nil
}

// UniqueBy returns the columns that identify a row, by the names the database uses, and whether one of the
// unique keys guarantees that they do.
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

// UserTables is implemented by a store that can work on tables of the user.
type UserTables interface {
	// OpenTable checks that a table exists and has the columns, and prepares its statements. The error says what is
	// missing and what to do.
	OpenTable(context.Context, Table) (UserTable, error)
}

// UserRow is a row of a user's table. Data is the complete row as a JSON object keyed by column name.
type UserRow struct {
	Workspace string // "" if the table has no such column
	ID        string
	Status    string
	Version   int64
	Data      []byte
}

// UserTable is a table of the user. Every write of a status is conditional on the status it replaces.
type UserTable interface {
	// FullName returns the name that the table has in the database, quoted and with its schema. It is the same for all ways to
	// name the table.
	FullName() string
	// SharesRows reports whether a row of the table can also be a row of another table of the same database: the tables are the
	// same, or one inherits from the other.
	SharesRows(other UserTable) bool
	// Read returns a row, through a transaction or, if conn is nil, outside any transaction.
	Read(ctx context.Context, conn Conn, workspace, id string) (row UserRow, found bool, err error)
	// Move changes the status of a row from one status to another and increments its version, which it returns. If
	// the row has another status, or another version than the one in want, nothing is changed and moved is false.
	Move(ctx context.Context, conn Conn, workspace, id, from, to string, want *int64) (version int64, moved bool, err error)
	// Write sets columns of a row to values in JSON. The columns must be listed in [Table.Write].
	Write(ctx context.Context, conn Conn, workspace, id string, values map[string]json.RawMessage) (found bool, err error)
	// In returns rows that are in one of the statuses, without their data: those of a workspace or, if it is "" or the
	// table has no such column, all.
	In(ctx context.Context, workspace string, statuses []string, limit int) ([]UserRow, error)
}
