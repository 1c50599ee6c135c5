package storetest

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/internal/testlevel"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

// OnBoth runs a test on a database of each kind, in parallel. db is its path or its URL:
// [holdfasttest.At] accepts it, also in another process.
func OnBoth(t *testing.T, f func(t *testing.T, db string)) {
	t.Helper()
	on(t, []string{"sqlite", "postgres"}, f)
}

// OnEach is OnBoth for code above the stores: at level test, the test runs on one of the databases (see
// [testlevel.Databases]).
func OnEach(t *testing.T, f func(t *testing.T, db string)) {
	t.Helper()
	on(t, testlevel.Databases(t), f)
}

// Databases returns the functions that create the databases of [OnEach], by name, for a test that is not called with one.
func Databases(t testing.TB) map[string]func(testing.TB) string {
	all := make(map[string]func(testing.TB) string)
	for _, name := range testlevel.Databases(t) {
		all[name] = map[string]func(testing.TB) string{"sqlite": holdfasttest.SQLite, "postgres": holdfasttest.PostgreSQL}[name]
	}
	return all
}

// Each is [OnEach] with an open engine.
func Each(t *testing.T, f func(*testing.T, *holdfast.Engine), parts ...holdfast.Part) {
	t.Helper()
	OnEach(t, func(t *testing.T, db string) { f(t, holdfasttest.OpenOn(t, holdfasttest.At(db), parts...)) })
}

func on(t *testing.T, databases []string, f func(t *testing.T, db string)) {
	t.Helper()
	for _, database := range databases {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			if database == "sqlite" {
				f(t, holdfasttest.SQLite(t))
			} else {
				f(t, holdfasttest.PostgreSQL(t))
			}
		})
	}
}

// IsSQLite reports whether a transaction is on SQLite.
func IsSQLite(tx holdfast.Tx) bool {
	return strings.HasPrefix(fmt.Sprintf("%T", store.TxOf(tx).Conn()), "*sqlite.")
}

var (
	ourTable = regexp.MustCompile(`\bholdfast_`)
	argument = regexp.MustCompile(`\$(\d)`)
)

// Exec runs a statement in a transaction on either database, and returns the number of affected
// rows. Arguments are $1, $2 …, and our tables are named as on SQLite.
func Exec(ctx context.Context, tx holdfast.Tx, text string, values ...any) (int64, error) {
	if !IsSQLite(tx) {
		tag, err := postgres.Raw(tx).Exec(ctx, ourTable.ReplaceAllString(text, "holdfast."), values...)
		return tag.RowsAffected(), err
	}
	r, err := sqlite.Raw(tx).ExecContext(ctx, argument.ReplaceAllString(text, "?$1"), values...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Column reads one column in a transaction on either database; the statement is as for [Exec]. On
// SQLite, NULL is the zero value.
func Column[T any](ctx context.Context, tx holdfast.Tx, text string) (all []T, err error) {
	if !IsSQLite(tx) {
		rows, err := postgres.Raw(tx).Query(ctx, ourTable.ReplaceAllString(text, "holdfast."))
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowTo[T])
	}
	rows, err := sqlite.Raw(tx).QueryContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var one *T
		if err := rows.Scan(&one); err != nil {
			return nil, err
		}
		if one == nil {
			one = new(T)
		}
		all = append(all, *one)
	}
	return all, rows.Err()
}
