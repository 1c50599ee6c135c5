package store

import "context"

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

// OwnTables is a store that can work on tables of the user's own.
type OwnTables interface {
	// OpenTable checks that a table is there and has the columns, and makes its
	// statements. The error says what is missing, and what to do.
	OpenTable(context.Context, Table) (OwnTable, error)
}

// OwnRow is a row of a table of the user's own. Data is the whole row, a JSON
// object by the names of the columns.
type OwnRow struct {
	Workspace string // "" where the table has no such column
	ID        string
	Status    string
	Version   int64
	Data      []byte
}

// OwnTable is a table of the user's own. Every write of a status is conditional on
// the one that it leaves.
type OwnTable interface {
	// Read returns a row, through a transaction or, if conn is nil, outside of
	// any.
	Read(ctx context.Context, conn Conn, workspace, id string) (row OwnRow, found bool, err error)
	// Move changes the status of a row that has the one named, and the version
	// if one is named, and adds one to its version, which it returns. Where the
	// row is not so, nothing is changed, and moved is false.
	Move(ctx context.Context, conn Conn, workspace, id, from, to string, want *int64) (version int64, moved bool, err error)
	// In returns rows that are in one of some statuses, without their data.
	In(ctx context.Context, statuses []string, limit int) ([]OwnRow, error)
}
