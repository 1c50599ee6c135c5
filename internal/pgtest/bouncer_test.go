package pgtest

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
)

// bouncer starts one before a fresh database, or skips the test if none is available.
func bouncer(t *testing.T) (direct, through string, stop func()) {
	t.Helper()
	shared(t)
	direct, drop, err := Database(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(drop)
	through, stop, err = Bouncer(t.Context(), direct)
	if errors.Is(err, errCannotInstall) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return direct, through, stop
}

func TestBouncerLeadsToTheDatabase(t *testing.T) {
	t.Parallel()
	direct, through, stop := bouncer(t)
	exec1(t, open(t, direct), "CREATE TABLE seen (n int)")
	conn := openSimple(t, through)
	exec1(t, conn, "INSERT INTO seen VALUES (1)")
	if n := one(t, open(t, direct), "SELECT count(*)::text FROM seen"); n != "1" {
		t.Errorf("got %s rows, want 1", n)
	}
	stop()
	stop()
	if err := ping(t.Context(), through); err == nil {
		t.Error("the pooler responds after stop")
	}
}

// TestBouncerPoolsByTransaction verifies that two clients share one server session, which only
// transaction mode does for clients that stay connected.
func TestBouncerPoolsByTransaction(t *testing.T) {
	t.Parallel()
	_, through, _ := bouncer(t)
	a, b := openSimple(t, through), openSimple(t, through)
	const session = "SELECT pg_backend_pid()::text"
	if one(t, a, session) != one(t, b, session) {
		t.Error("two clients that take turns have different sessions")
	}
}

// openSimple opens a connection that prepares nothing, as required behind a transaction pooler.
func openSimple(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	return open(t, url+"&default_query_exec_mode=simple_protocol")
}

func TestBouncerConfigQuotes(t *testing.T) {
	t.Parallel()
	target, err := pgx.ParseConfig("host=h user=u password='it\\'s'")
	if err != nil {
		t.Fatal(err)
	}
	if got := quote(target.Password); got != "'it''s'" {
		t.Errorf("got %s", got)
	}
}
