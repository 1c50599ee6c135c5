package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-go/holdfast/holdfasttest"
)

// TestAnAutovacuumHasNoUser verifies that autovacuum processes have no user, and that sessions have one. The statements
// that wait for open transactions use this to leave out autovacuum, which may take hours on a large table.
func TestAnAutovacuumHasNoUser(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), holdfasttest.PostgreSQL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	var launchers, users, sessions int
	err = conn.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE backend_type = 'autovacuum launcher'),
		count(*) FILTER (WHERE backend_type LIKE 'autovacuum%' AND usesysid IS NOT NULL),
		count(*) FILTER (WHERE pid = pg_backend_pid() AND usesysid IS NOT NULL) FROM pg_stat_activity`).Scan(&launchers, &users, &sessions)
	if err != nil {
		t.Fatal(err)
	}
	if launchers != 1 || users != 0 || sessions != 1 {
		t.Errorf("got %d autovacuum launchers, %d autovacuum processes with a user and %d own sessions with a user; want 1, 0 and 1", launchers, users, sessions)
	}
}
