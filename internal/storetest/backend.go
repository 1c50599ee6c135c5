package storetest

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

// SQLite returns a backend whose file the engine opens itself.
func SQLite() Backend {
	return Backend{Name: "sqlite", New: func(t testing.TB) Database {
		path := holdfasttest.SQLite(t)
		return sqliteDatabase(t, sqlite.File(path), path)
	}}
}

// SQLitePool returns a backend on a pool that the program opens: several connections with deferred
// transactions.
func SQLitePool() Backend {
	return Backend{Name: "sqlite-pool", New: func(t testing.TB) Database {
		path := holdfasttest.SQLite(t)
		db := openSQLite(t, path, "_pragma=busy_timeout(50)&_pragma=journal_mode(WAL)")
		db.SetMaxOpenConns(8)
		return sqliteDatabase(t, sqlite.DB(db), path)
	}}
}

// Postgres returns a backend on a real server.
func Postgres(options ...postgres.Option) Backend {
	return Backend{Name: "postgres", New: func(t testing.TB) Database {
		url := holdfasttest.PostgreSQL(t)
		return postgresDatabase(t, postgres.URL(url, options...), url)
	}}
}

// PostgresPlain returns a backend that never uses the fast statements.
func PostgresPlain() Backend {
	return Backend{Name: "postgres", New: func(t testing.TB) Database {
		url := holdfasttest.PostgreSQL(t)
		return postgresDatabase(t, store.Plain(postgres.URL(url)), url)
	}}
}

func openSQLite(t testing.TB, path, params string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?"+params)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func sqliteDatabase(t testing.TB, db *sqlite.Database, path string) Database {
	pool := openSQLite(t, path, "_pragma=busy_timeout(10000)&_txlock=immediate")
	return Database{
		Database: db,
		Begin: func(t testing.TB, hf *holdfast.Engine) UserTx {
			t.Helper()
			tx, err := pool.Begin()
			if err != nil {
				t.Fatal(err)
			}
			return &sqliteTx{hf, tx}
		},
		Raw: func(ctx context.Context, tx holdfast.Tx, query string) error {
			_, err := sqlite.Raw(tx).ExecContext(ctx, query)
			return err
		},
	}
}

type sqliteTx struct {
	hf *holdfast.Engine
	tx *sql.Tx
}

func (u *sqliteTx) Join() (holdfast.Tx, error) { return sqlite.Join(u.hf, u.tx) }
func (u *sqliteTx) Commit() error              { return u.tx.Commit() }
func (u *sqliteTx) Rollback() error            { return u.tx.Rollback() }

func (u *sqliteTx) Exec(query string) error {
	_, err := u.tx.Exec(query)
	return err
}

func (u *sqliteTx) Count(from string) (n int, err error) {
	err = u.tx.QueryRow(`SELECT count(*) FROM ` + from).Scan(&n)
	return n, err
}

func postgresDatabase(t testing.TB, db holdfast.Database, url string) Database {
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return Database{
		Database: db,
		Begin: func(t testing.TB, hf *holdfast.Engine) UserTx {
			t.Helper()
			tx, err := pool.Begin(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			return &postgresTx{hf, tx}
		},
		Raw: func(ctx context.Context, tx holdfast.Tx, query string) error {
			_, err := postgres.Raw(tx).Exec(ctx, query)
			return err
		},
	}
}

type postgresTx struct {
	hf *holdfast.Engine
	tx pgx.Tx
}

func (u *postgresTx) Join() (holdfast.Tx, error) { return postgres.Join(u.hf, u.tx) }
func (u *postgresTx) Commit() error              { return u.tx.Commit(context.Background()) }
func (u *postgresTx) Rollback() error            { return u.tx.Rollback(context.Background()) }

func (u *postgresTx) Exec(query string) error {
	_, err := u.tx.Exec(context.Background(), query)
	return err
}

func (u *postgresTx) Count(from string) (n int, err error) {
	err = u.tx.QueryRow(context.Background(), `SELECT count(*) FROM `+from).Scan(&n)
	return n, err
}
