package stage

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // "pgx" for database/sql
	_ "modernc.org/sqlite"             // "sqlite" for database/sql

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

// DB gives the program access to its own tables. It exists because the examples run on both
// databases; your program has one database and keeps using its driver. A DB is safe for
// concurrent use.
type DB struct {
	url  string
	pool *sql.DB
}

// Writer executes a statement with the arguments $1, $2 …
type Writer interface {
	// Exec executes a statement.
	Exec(ctx context.Context, text string, args ...any) error
}

// OpenDB opens the database at sqlite:path or postgres://…
func OpenDB(address string) (*DB, error) {
	driver, dsn := "pgx", address
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok {
		driver, dsn = "sqlite", (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "_pragma=busy_timeout(20000)"}).String()
	} else if !strings.HasPrefix(address, "postgres://") && !strings.HasPrefix(address, "postgresql://") {
		return nil, fmt.Errorf("-db must be sqlite:path or postgres://…, got %q", address)
	}
	pool, err := sql.Open(driver, dsn)
	return &DB{url: address, pool: pool}, err
}

// Close closes the connections of the program.
func (d *DB) Close() error { return d.pool.Close() }

// Name returns the address of the database without its password.
func (d *DB) Name() string {
	if u, err := url.Parse(d.url); err == nil && u.User != nil {
		return u.Redacted()
	}
	return d.url
}

// Holdfast returns the same database for [holdfast.Open]. It has the tables of Holdfast and
// those of the program.
func (d *DB) Holdfast() holdfast.Database {
	if path, ok := strings.CutPrefix(d.url, "sqlite:"); ok {
		return sqlite.File(path)
	}
	return postgres.URL(d.url)
}

// In returns a writer for the program's own tables inside a transaction of Holdfast. Its
// writes commit with the step, or not at all. In your program this is one line:
//
//	_, err := sqlite.Raw(tx).ExecContext(ctx, `INSERT …`)   // a *sql.Tx
//	_, err := postgres.Raw(tx).Exec(ctx, `INSERT …`)        // a pgx.Tx
func (d *DB) In(tx holdfast.Tx) Writer { return within{d, tx} }

type within struct {
	db *DB
	tx holdfast.Tx
}

func (w within) Exec(ctx context.Context, text string, args ...any) (err error) {
	if w.db.sqlite() {
		_, err = sqlite.Raw(w.tx).ExecContext(ctx, w.db.dialect(text), args...)
	} else {
		_, err = postgres.Raw(w.tx).Exec(ctx, text, args...)
	}
	return err
}

// Exec executes a statement on its own, outside the transactions of Holdfast.
func (d *DB) Exec(ctx context.Context, text string, args ...any) error {
	_, err := d.pool.ExecContext(ctx, d.dialect(text), args...)
	return err
}

// Row queries one row.
func (d *DB) Row(ctx context.Context, text string, args ...any) *sql.Row {
	return d.pool.QueryRowContext(ctx, d.dialect(text), args...)
}

// Rows queries all rows, as text.
func (d *DB) Rows(ctx context.Context, text string, args ...any) (all [][]string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("reading %s with %q: %w", d.Name(), text, err)
		}
	}()
	rows, err := d.pool.QueryContext(ctx, d.dialect(text), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	for err == nil && rows.Next() {
		row, dest := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range row {
			dest[i] = &row[i]
		}
		err = rows.Scan(dest...)
		one := make([]string, len(row))
		for i, v := range row {
			one[i] = v.String
		}
		all = append(all, one)
	}
	if err != nil {
		return nil, err
	}
	return all, rows.Err()
}

// Column queries the first column of all rows.
func (d *DB) Column(ctx context.Context, text string, args ...any) (all []string, err error) {
	rows, err := d.Rows(ctx, text, args...)
	for _, row := range rows {
		all = append(all, row[0])
	}
	return all, err
}

func (d *DB) sqlite() bool { return strings.HasPrefix(d.url, "sqlite:") }

// dialect converts the placeholders to those of the database.
func (d *DB) dialect(text string) string {
	if d.sqlite() {
		return strings.ReplaceAll(text, "$", "?")
	}
	return text
}
