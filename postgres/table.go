package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/store"
)

var _ store.UserTables = (*adapter)(nil)

// table is a table of the user's own.
//
// # Text and types
//
// Ids, statuses and workspaces are text to us, and the columns have types. The
// text is cast to the type of the column, never the other way round, so that its
// indexes serve. A text that does not cast would end the user's transaction with
// an error, so such a text is not sent: it is held against the type here, or, for
// an enum, looked up in the catalog. Types that this cannot be said of are refused
// when the table is opened. Rejected: to try the cast in a savepoint, because an
// error of the same code may come from a trigger of the user's.
//
// A row has one name, the text of its id: what we keep beside the table is kept
// under it. So "007" is not 7, and case counts also in a citext.
//
// # Savepoint
//
// A constraint or a trigger of the user's may refuse a move. It runs in a
// savepoint, sent in the same round trip, and leaves the transaction usable.
type table struct {
	store *adapter
	name  string // quoted, with its schema
	role  string
	cols  columns

	read, move, in string
}

// columns are those that we use. The workspace's is nil where there is none.
type columns struct {
	id, status, version, workspace *column
}

type column struct {
	name     string // as it is in the catalog
	kind     kind
	bits     int    // of an integer
	cast     string // the type, quoted, with its schema, and without a length
	schema   string // of the type's operators, quoted
	oid      uint32 // of the type
	declared string // the type as a person writes it
	fixed    bool   // the database makes its value
	write    bool   // the role may update it
}

type kind int

const (
	otherKind kind = iota
	intKind
	numericKind
	uuidKind
	textKind
	enumKind
)

var (
	builtin = map[string]kind{"int2": intKind, "int4": intKind, "int8": intKind, "numeric": numericKind, "uuid": uuidKind,
		"text": textKind, "varchar": textKind, "bpchar": textKind, "name": textKind}
	bits = map[string]int{"int2": 16, "int4": 32, "int8": 64}

	uuidText    = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	numericText = regexp.MustCompile(`^-?[0-9]{1,500}(\.[0-9]{1,500})?$`)
)

// kindOf tells the kind of a type by its schema, its name and its typtype.
func kindOf(schema, name, sort string) kind {
	switch {
	case sort == "e":
		return enumKind
	case sort == "b" && name == "citext":
		return textKind
	case schema == "pg_catalog":
		return builtin[name]
	}
	return otherKind
}

// fits says whether a text can be that of a value of the column. One that cannot
// is in no row, and may not be cast.
func (c *column) fits(text string) bool {
	switch c.kind {
	case intKind:
		n, err := strconv.ParseInt(text, 10, c.bits)
		return err == nil && strconv.FormatInt(n, 10) == text
	case numericKind:
		return numericText.MatchString(text)
	case uuidKind:
		return uuidText.MatchString(text)
	}
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}

func (c *column) quoted() string { return "t." + pgx.Identifier{c.name}.Sanitize() }

// text is the column's value as text, compared letter by letter.
func (c *column) text() string { return "(" + c.quoted() + `::text COLLATE "C")` }

// equals is the type's own operator, and no other that the search_path may lead to: of most types there is none for just
// the type, so that one made by somebody else would fit better.
func (c *column) equals() string { return " OPERATOR(" + c.schema + ".=) " }

// is compares the column with a parameter.
func (c *column) is(param string) string {
	value := param + "::text::" + c.cast
	if c.kind == enumKind {
		value = fmt.Sprintf("(SELECT e.enumlabel::text::%s FROM pg_catalog.pg_enum AS e WHERE e.enumtypid = %d::oid AND e.enumlabel = %s::text)", c.cast, c.oid, param)
	}
	return c.quoted() + c.equals() + value + " AND " + c.text() + " = " + param + "::text"
}

// among compares the column with a parameter of several texts.
func (c *column) among(param string) string {
	values := param + "::text[]::" + c.cast + "[]"
	if c.kind == enumKind {
		values = fmt.Sprintf("ARRAY(SELECT e.enumlabel::text::%s FROM pg_catalog.pg_enum AS e WHERE e.enumtypid = %d::oid AND e.enumlabel::text = ANY (%s::text[]))", c.cast, c.oid, param)
	}
	return c.quoted() + c.equals() + "ANY (" + values + ") AND " + c.text() + " = ANY (" + param + "::text[])"
}

// statements makes the SQL. The whole row is t.*, because t alone may be a column.
// It is made json and not jsonb, which refuses some values that a json column may
// hold. A version that is NULL counts as 0.
func (t *table) statements() {
	workspace, key, present, order := "''", t.cols.id.is("$2"), t.cols.id.quoted()+" IS NOT NULL", t.cols.id.quoted()
	if w := t.cols.workspace; w != nil {
		workspace, key = w.quoted()+"::text", w.is("$1")+" AND "+key
		present, order = present+" AND "+w.quoted()+" IS NOT NULL", order+", "+w.quoted()
	} else {
		key = "$1::text = '' AND " + key
	}
	version := "coalesce(" + t.cols.version.quoted() + ", 0)"
	row := "SELECT " + workspace + ", " + t.cols.id.quoted() + "::text, coalesce(" + t.cols.status.quoted() + "::text, ''), " + version + "::bigint"
	t.read = row + ", pg_catalog.to_json(t.*)::text FROM " + t.name + " AS t WHERE " + key
	t.in = row + ", NULL FROM " + t.name + " AS t WHERE " + t.cols.status.among("$1") + " AND " + present + " ORDER BY " + order + " LIMIT $2::bigint"
	t.move = "UPDATE " + t.name + " AS t SET " + pgx.Identifier{t.cols.status.name}.Sanitize() + " = $4::text::" + t.cols.status.cast +
		", " + pgx.Identifier{t.cols.version.name}.Sanitize() + " = " + version + " + 1" +
		" WHERE " + key + " AND " + t.cols.status.is("$3") + " AND ($5::bigint IS NULL OR " + version + " = $5::bigint)" +
		" RETURNING " + version + "::bigint, coalesce(" + t.cols.status.quoted() + "::text, '')"
}

// Texts returns the SQL, for tests and for the curious.
func (t *table) Texts() store.Texts { return store.Texts{"read": t.read, "move": t.move, "in": t.in} }

// Read returns a row, through a transaction or outside of any.
func (t *table) Read(ctx context.Context, sc store.Conn, workspace, id string) (row store.UserRow, found bool, err error) {
	workspace, ok := t.key(workspace, id)
	if !ok {
		return row, false, nil
	}
	var rows []store.UserRow
	if sc == nil {
		err = store.Retry(ctx, func() (err error) {
			rows, err = t.ask(ctx, t.read, workspace, id)
			return err
		})
	} else if c, wrong := t.conn(ctx, sc); wrong != nil {
		err = wrong
	} else {
		err = c.call(ctx, func(ctx context.Context) (err error) {
			rows, err = query(ctx, c.tx, t.read, workspace, id)
			return err
		})
		err = t.fault(err)
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
func (t *table) In(ctx context.Context, statuses []string, limit int) (rows []store.UserRow, err error) {
	statuses = slices.DeleteFunc(slices.Clone(statuses), func(s string) bool { return !t.cols.status.fits(s) })
	if len(statuses) == 0 || limit <= 0 {
		return nil, nil
	}
	err = store.Retry(ctx, func() (err error) {
		rows, err = t.ask(ctx, t.in, statuses, limit)
		return err
	})
	return rows, err
}

// ask reads rows outside of any transaction.
func (t *table) ask(ctx context.Context, text string, args ...any) (rows []store.UserRow, err error) {
	link, err := t.store.acquire(ctx, t.store.pool)
	if err != nil {
		return nil, err
	}
	defer link.Release()
	err = t.store.call(ctx, link.Conn(), func(ctx context.Context) (err error) {
		rows, err = query(ctx, link, text, args...)
		return err
	})
	return rows, t.fault(err)
}

func query(ctx context.Context, q querier, text string, args ...any) ([]store.UserRow, error) {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (row store.UserRow, err error) {
		return row, r.Scan(&row.Workspace, &row.ID, &row.Status, &row.Version, &row.Data)
	})
}

// Move changes the status of a row that has the one named.
func (t *table) Move(ctx context.Context, sc store.Conn, workspace, id, from, to string, want *int64) (version int64, moved bool, err error) {
	c, err := t.conn(ctx, sc)
	if err != nil {
		return 0, false, err
	}
	if !t.cols.status.fits(to) {
		return 0, false, fault.New(fault.Validation, "the status %q cannot be kept: the column %s of %s is of type %s", to, t.cols.status.name, t.name, t.cols.status.declared)
	}
	workspace, ok := t.key(workspace, id)
	if !ok || !t.cols.status.fits(from) {
		return 0, false, nil
	}
	var status string
	var n int
	err = c.call(ctx, func(ctx context.Context) (err error) {
		n, err = t.guarded(ctx, c.tx, []any{&version, &status}, workspace, id, from, to, want)
		return err
	})
	switch {
	case err == nil && n == 0:
		return 0, false, nil
	case err == nil && n > 1:
		err = t.several(n, id)
	case err == nil && status != to:
		err = fault.New(fault.Validation, "%s keeps the status %q as %q: look at its triggers and at the type of %s, which is %s", t.name, to, status, t.cols.status.name, t.cols.status.declared)
	}
	if err != nil {
		_ = c.call(ctx, func(ctx context.Context) error { return undo(ctx, c.tx) })
		return 0, false, t.fault(err)
	}
	return version, true, nil
}

const savepoint = "holdfast_table"

// guarded runs the move in a savepoint, in one round trip, and counts its rows.
func (t *table) guarded(ctx context.Context, tx pgx.Tx, dest []any, args ...any) (n int, err error) {
	var b pgx.Batch
	b.Queue("SAVEPOINT " + savepoint)
	b.Queue(t.move, args...)
	b.Queue("RELEASE SAVEPOINT " + savepoint)
	all := tx.SendBatch(ctx, &b)
	defer func() { err = cmp.Or(err, all.Close()) }()
	if _, err := all.Exec(); err != nil {
		return 0, err
	}
	rows, err := all.Query()
	if err != nil {
		return 0, err
	}
	for rows.Next() && err == nil {
		n++
		err = rows.Scan(dest...)
	}
	rows.Close()
	return n, cmp.Or(err, rows.Err())
}

// undo goes back to the savepoint. Where it is gone already, because the move
// went well and only its result is wrong, the statement fails, and the
// transaction can then not be committed, which is what is wanted.
func undo(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "ROLLBACK TO SAVEPOINT "+savepoint)
	if err == nil {
		_, err = tx.Exec(ctx, "RELEASE SAVEPOINT "+savepoint)
	}
	return err
}

// key says whether a row can have this workspace and id. Where the table has no
// column for it, the workspace does not count.
func (t *table) key(workspace, id string) (string, bool) {
	if t.cols.workspace == nil {
		return "", t.cols.id.fits(id)
	}
	return workspace, t.cols.workspace.fits(workspace) && t.cols.id.fits(id)
}

// conn is the transaction under what stands around it.
func (t *table) conn(ctx context.Context, sc store.Conn) (*conn, error) {
	if sc == nil {
		return nil, fault.New(fault.Internal, "%s is changed only inside a transaction", t.name)
	}
	c, ok := store.Unwrap(sc).(*conn)
	if !ok || c.store != t.store {
		return nil, fault.New(fault.Internal, "%s is used in a transaction of another engine", t.name)
	}
	return c, ctx.Err()
}

func (t *table) several(n int, id string) error {
	return fault.New(fault.Internal, "%d rows of %s have the id %q, which was unique when the table was opened", n, t.name, id)
}

// fault is mapError for a statement on the user's table, where some codes have
// another meaning than on ours.
func (t *table) fault(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return mapError(err)
	}
	switch pg.Code {
	case "42501":
		return t.denied("SELECT, UPDATE ON "+t.name, pg.Message).Wrap(err)
	case "42P01", "42703", "42704", "42804", "42846", "42883", "3F000", "0A000":
		return fault.New(fault.Validation, "%s is not what it was when it was opened (%s): bring it back, or restart with the table as it is", t.name, pg.Message).Wrap(err)
	}
	switch pg.Code[:min(2, len(pg.Code))] {
	case "22", "23", "44", "P0":
		return fault.New(fault.Validation, "%s refuses it (%s)", t.name, pg.Message).Wrap(err)
	}
	return mapError(err)
}

func (t *table) denied(grant, why string) *fault.Error {
	return fault.New(fault.DatabaseDenied, "the role %s lacks a privilege (%s): GRANT %s TO %s", t.role, why, grant, pgx.Identifier{t.role}.Sanitize())
}
