package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/testkit"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/stream"
)

// TestARestoreNeedsToEndConnections verifies that a role that may not end the connections of others is told so, and that the generation stays.
func TestARestoreNeedsToEndConnections(t *testing.T) {
	url := fresh(t)
	admin, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close(context.Background())
	role := "owner_" + admin.Config().Database
	for _, s := range []string{"CREATE ROLE " + role + " LOGIN PASSWORD 'x'", "ALTER DATABASE " + admin.Config().Database + " OWNER TO " + role} {
		if _, err := admin.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := pgtest.Exec(context.Background(), url, "REASSIGN OWNED BY "+role+" TO CURRENT_USER; DROP OWNED BY "+role+"; DROP ROLE "+role); err != nil {
			t.Error(err)
		}
	})
	config := admin.Config().Copy()
	pool, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	pool.ConnConfig = config
	pool.ConnConfig.User, pool.ConnConfig.Password = role, "x"
	owners, err := pgxpool.NewWithConfig(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	defer owners.Close()
	db := postgres.Pool(owners)
	if _, _, err := holdfast.Migrate(t.Context(), db, holdfast.Migration{}); err != nil {
		t.Fatal(err)
	}
	// admin is still connected.
	if _, err := holdfast.MigrateRestored(t.Context(), db, holdfast.Migration{}); fault.CodeOf(err) != fault.DatabaseDenied || !strings.Contains(err.Error(), "stop them") {
		t.Errorf("a restore beside a connection of a superuser: %v, want %s", err, fault.DatabaseDenied)
	}
	var restores int
	if err := admin.QueryRow(t.Context(), "SELECT count(*) FROM holdfast.restore").Scan(&restores); err != nil || restores != 0 {
		t.Errorf("%d restores are recorded: %v", restores, err)
	}
}

// TestARestoreRefusesOldTransactions verifies that a program whose pool and transactions are its own is refused, also while one of its
// transactions is open, and behind a pooler.
func TestARestoreRefusesOldTransactions(t *testing.T) {
	for name, database := range map[string]func(t *testing.T) (direct, through string){
		"its own pool": func(t *testing.T) (direct, through string) {
			direct = fresh(t)
			return direct, direct
		},
		"behind a pooler": bouncer,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			direct, through := database(t)
			if _, _, err := holdfast.Migrate(ctx, postgres.URL(direct), holdfast.Migration{}); err != nil {
				t.Fatal(err)
			}
			config, err := pgxpool.ParseConfig(through)
			if err != nil {
				t.Fatal(err)
			}
			if through != direct {
				config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
			}
			pool, err := pgxpool.NewWithConfig(ctx, config)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			old, err := holdfast.Open(ctx, postgres.Pool(pool), holdfast.Config{NoMigrate: true})
			if err != nil {
				t.Fatal(err)
			}
			defer old.Close()
			write := func() error {
				return pgx.BeginFunc(ctx, pool, func(own pgx.Tx) error {
					tx, err := postgres.Join(old, own)
					if err == nil {
						_, err = stream.Append(ctx, tx, "s", stream.Any, stream.Event{Name: "e"})
					}
					return err
				})
			}
			if err := write(); err != nil {
				t.Fatal(err)
			}
			open, err := pool.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer open.Rollback(context.Background())
			tx, err := postgres.Join(old, open)
			if err == nil {
				_, err = stream.Append(ctx, tx, "s", stream.Any, stream.Event{Name: "e"})
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := holdfast.MigrateRestored(ctx, postgres.URL(direct), holdfast.Migration{}); err != nil {
				t.Fatal(err)
			}
			if err := open.Commit(ctx); err == nil {
				t.Error("a transaction that was open during the restore was committed")
			}
			testkit.Eventually(t, "the program is refused", func() bool {
				err := write()
				if err == nil {
					t.Fatal("a joined write after the restore was accepted")
				}
				return errors.Is(err, holdfast.ErrDatabaseRestored) // and not only that its connection has ended
			})
			if _, err := stream.Append(ctx, old, "s", stream.Any, stream.Event{Name: "e"}); !errors.Is(err, holdfast.ErrDatabaseRestored) {
				t.Errorf("an append after the restore: %v, want ErrDatabaseRestored", err)
			}
		})
	}
}
