package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

var _ store.UserTables = (*adapter)(nil)

// table is a table of the user's own.
//
// Ids, statuses and workspaces are text to us. Compared with a column they take
// on its affinity, so that its indexes serve, and a text that is no number is then
// simply not equal to one. They are compared as text besides: a row has one name,
// the text of its id, because what we keep beside the table is kept under it. So
// "007" is not 7, and case counts also where the column has a collation.
//
// A constraint or a trigger of the user's may refuse a move. It runs in a
// savepoint, and leaves the transaction usable.
//
// Statements are prepared for each use: beside a commit that costs little, and
// there is nothing to close.
type table struct {
	store *adapter
	name  string // quoted, with its schema
	cols  columns
	all   []column
	keys  []string // the names of all columns, as JSON

	read, move string
	row        string // what In begins with
}

// columns are those that we use. The workspace's is nil where there is none.
type columns struct {
	id, status, version, workspace *column
}

type column struct {
	name     string // as the table has it
	declared string // its type, upper case
	pk       int    // its place in the primary key, from 1
	fixed    bool   // the database makes its value
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func (c *column) quoted() string { return "t." + quote(c.name) }

func (c *column) text() string { return "CAST(" + c.quoted() + " AS TEXT)" }

// is compares the column with a parameter.
func (c *column) is(param string) string {
	return c.quoted() + " = " + param + " AND " + c.text() + " = " + param + " COLLATE BINARY"
}

// json is the column's value as JSON. What JSON lacks is text: a blob, in the form
// that PostgreSQL gives it, and an infinite number. A column that is declared JSON
// is taken in as it stands.
func (c *column) json() string {
	q := c.quoted()
	text := "json_quote(" + q + ")"
	if c.declared == "JSON" {
		text = "CASE WHEN json_valid(" + q + ") THEN " + q + " ELSE json_quote(" + q + ") END"
	}
	return `CASE typeof(` + q + `) WHEN 'blob' THEN json_quote('\x' || lower(hex(` + q + `)))` +
		` WHEN 'real' THEN CASE WHEN abs(` + q + `) > 1.7976931348623157e308 THEN json_quote(CASE WHEN ` + q + ` > 0 THEN 'Infinity' ELSE '-Infinity' END) ELSE json_quote(` + q + `) END` +
		` WHEN 'text' THEN ` + text + ` ELSE json_quote(` + q + `) END`
}

// statements makes the SQL. The values of a row come one by one, and are put
// together here: json_object takes only so many. A version that is NULL counts as 0.
func (t *table) statements() error {
	id, status := t.cols.id, t.cols.status
	workspace, key := "''", "?1 = '' AND "+id.is("?2")
	if w := t.cols.workspace; w != nil {
		workspace, key = w.text(), w.is("?1")+" AND "+id.is("?2")
	}
	version := "coalesce(" + t.cols.version.quoted() + ", 0)"
	from := " FROM " + t.name + " AS t"
	row := "SELECT " + workspace + ", " + id.text() + ", coalesce(" + status.text() + ", ''), CAST(" + version + " AS INTEGER)"
	t.row = row + from
	var data strings.Builder
	for _, c := range t.all {
		name, err := json.Marshal(c.name)
		if err != nil {
			return err
		}
		t.keys = append(t.keys, string(name))
		data.WriteString(", " + c.json())
	}
	t.read = row + data.String() + from + " WHERE " + key
	t.move = "UPDATE " + t.name + " AS t SET " + quote(status.name) + " = ?4, " + quote(t.cols.version.name) + " = " + version + " + 1" +
		" WHERE " + key + " AND " + status.is("?3") + " AND (?5 IS NULL OR " + version + " = ?5)" +
		// RETURNING knows the columns by their own names alone.
		" RETURNING CAST(" + quote(t.cols.version.name) + " AS INTEGER), CAST(" + quote(status.name) + " AS TEXT)"
	return nil
}

// Texts returns the SQL, for tests and for the curious.
func (t *table) Texts() store.Texts {
	return store.Texts{"read": t.read, "move": t.move, "in": t.inText(2)}
}

// inText is the statement for so many statuses.
func (t *table) inText(n int) string {
	params := make([]string, n)
	for i := range params {
		params[i] = fmt.Sprintf("?%d", i+2)
	}
	id, status, list := t.cols.id.quoted(), t.cols.status, " IN ("+strings.Join(params, ", ")+")"
	where := " WHERE " + status.quoted() + list + " AND " + status.text() + " COLLATE BINARY" + list + " AND " + id + " IS NOT NULL"
	if w := t.cols.workspace; w != nil {
		return t.row + where + " AND " + w.quoted() + " IS NOT NULL ORDER BY " + id + ", " + w.quoted() + " LIMIT +?1"
	}
	return t.row + where + " ORDER BY " + id + " LIMIT +?1"
}

type rowsOf interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// Read returns a row, through a transaction or outside of any.
func (t *table) Read(ctx context.Context, sc store.Conn, workspace, id string) (row store.UserRow, found bool, err error) {
	args := []any{t.key(workspace), id}
	var rows []store.UserRow
	if sc == nil {
		rows, err = t.outside(ctx, t.read, args)
	} else if c, wrong := t.conn(ctx, sc); wrong != nil {
		err = wrong
	} else {
		rows, err = t.query(context.WithoutCancel(ctx), c.tx, t.read, args)
	}
	if err != nil || len(rows) == 0 {
		return row, false, err
	}
	if len(rows) > 1 {
		return row, false, t.several(len(rows), id)
	}
	return rows[0], true, nil
}

// In returns rows that are in one of some statuses, by their ids.
func (t *table) In(ctx context.Context, statuses []string, limit int) ([]store.UserRow, error) {
	if len(statuses) == 0 || limit <= 0 {
		return nil, nil
	}
	args := []any{limit}
	for _, s := range statuses {
		args = append(args, s)
	}
	return t.outside(ctx, t.inText(len(statuses)), args)
}

// outside reads outside of any transaction.
func (t *table) outside(ctx context.Context, text string, args []any) (rows []store.UserRow, err error) {
	if !t.store.owned { // of a pool of one, an update may have the only connection
		wait, cancel := context.WithTimeout(ctx, longTurn)
		defer cancel()
		ctx = wait
	}
	err = store.Retry(ctx, func() (err error) {
		rows, err = t.query(ctx, t.store.read, text, args)
		return err
	})
	return rows, err
}

func (t *table) query(ctx context.Context, q rowsOf, text string, args []any) (all []store.UserRow, err error) {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, t.fault(err)
	}
	defer rows.Close()
	for rows.Next() {
		row, err := t.scan(rows)
		if err != nil {
			return nil, t.fault(err)
		}
		all = append(all, row)
	}
	return all, t.fault(rows.Err())
}

// scan reads a row, with its data if the statement returns it.
func (t *table) scan(rows *sql.Rows) (row store.UserRow, err error) {
	names, err := rows.Columns()
	if err != nil {
		return row, err
	}
	dest := []any{&row.Workspace, &row.ID, &row.Status, &row.Version}
	values := make([]string, len(names)-len(dest))
	for i := range values {
		dest = append(dest, &values[i])
	}
	if err := rows.Scan(dest...); err != nil || len(values) == 0 {
		return row, err
	}
	members := make([]string, len(values))
	for i, v := range values {
		members[i] = t.keys[i] + ":" + strings.ToValidUTF8(v, "\uFFFD")
	}
	row.Data = []byte("{" + strings.Join(members, ",") + "}")
	return row, nil
}

// Move changes the status of a row that has the one named.
func (t *table) Move(ctx context.Context, sc store.Conn, workspace, id, from, to string, want *int64) (version int64, moved bool, err error) {
	c, err := t.conn(ctx, sc)
	if err != nil {
		return 0, false, err
	}
	if !utf8.ValidString(to) || strings.ContainsRune(to, 0) {
		return 0, false, fault.New(fault.Validation, "%q cannot be a status", to)
	}
	args := []any{t.key(workspace), id, from, to, nil}
	if want != nil {
		args[4] = *want
	}
	err = c.savepoint(ctx, func(ctx context.Context) error {
		version, moved, err = t.change(ctx, c.tx, id, to, args)
		return t.fault(err)
	})
	if err != nil {
		return 0, false, err
	}
	return version, moved, nil
}

// change runs the move, reads what it says to its end, and checks it.
func (t *table) change(ctx context.Context, tx *sql.Tx, id, to string, args []any) (version int64, moved bool, err error) {
	rows, err := tx.QueryContext(ctx, t.move, args...)
	if err != nil {
		return 0, false, err
	}
	defer rows.Close()
	n, status := 0, ""
	for ; rows.Next(); n++ {
		if err := rows.Scan(&version, &status); err != nil {
			return 0, false, err
		}
	}
	switch {
	case rows.Err() != nil:
		return 0, false, rows.Err()
	case n > 1:
		return 0, false, t.several(n, id)
	case n == 1 && status != to:
		return 0, false, fault.New(fault.Validation, "%s keeps the status %q as %q: declare the column %s TEXT", t.name, to, status, t.cols.status.name)
	}
	return version, n == 1, nil
}

// savepoint runs f so that a failure leaves the transaction as it was. Some
// failures, as of a trigger that says ROLLBACK, end the whole transaction: one of
// ours must then not go on.
func (c *conn) savepoint(ctx context.Context, f func(context.Context) error) error {
	ctx = context.WithoutCancel(ctx)
	if _, err := c.tx.ExecContext(ctx, "SAVEPOINT holdfast_table"); err != nil {
		return c.store.fault(err)
	}
	err := f(ctx)
	if err != nil {
		if _, undo := c.tx.ExecContext(ctx, "ROLLBACK TO holdfast_table"); undo != nil {
			return c.gone(err)
		}
	}
	if _, end := c.tx.ExecContext(ctx, "RELEASE holdfast_table"); end != nil {
		return c.gone(errors.Join(err, c.store.fault(end)))
	}
	return err
}

// gone notes that the transaction is lost.
func (c *conn) gone(err error) error {
	if !c.joined {
		c.failed = err
	}
	_ = c.tx.Rollback()
	return err
}

// key is the workspace to ask for. Where the table has no column for it, it does
// not count.
func (t *table) key(workspace string) string {
	if t.cols.workspace == nil {
		return ""
	}
	return workspace
}

// conn is the transaction under what stands around it, if it can still be used.
func (t *table) conn(ctx context.Context, sc store.Conn) (*conn, error) {
	if sc == nil {
		return nil, fault.New(fault.Internal, "%s is changed only inside a transaction", t.name)
	}
	c, ok := store.Unwrap(sc).(*conn)
	if !ok || c.store != t.store {
		return nil, fault.New(fault.Internal, "%s is used in a transaction of another engine", t.name)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.ended.Load() {
		return nil, t.store.fault(sql.ErrTxDone)
	}
	if c.failed == nil && !c.joined {
		c.failed = c.whole(ctx)
	}
	return c, c.failed
}

func (t *table) several(n int, id string) error {
	return fault.New(fault.Internal, "%d rows of %s have the id %q, which was unique when the table was opened", n, t.name, id)
}

const (
	codeConstraint = 19
	codeMismatch   = 20
)

// fault is mapError for a statement on the user's table, where some codes have
// another meaning than on ours.
func (t *table) fault(err error) error {
	var c coded
	if errors.As(err, &c) {
		switch c.Code() & 0xff {
		case codeConstraint, codeMismatch:
			return fault.New(fault.Validation, "%s refuses it (%v)", t.name, err).Wrap(err)
		case codeGeneric:
			return fault.New(fault.Validation, "%s is not what it was when it was opened (%v): bring it back, or restart with the table as it is", t.name, err).Wrap(err)
		}
	}
	return t.store.fault(err)
}
