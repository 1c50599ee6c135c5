package pgtest

import "testing"

// closed counts its calls.
type closed int

func (c *closed) Close() error {
	*c++
	return nil
}

// TestReuse verifies that a returned database is empty for the next test that takes it, and that a
// database whose shape has changed is not given out again.
func TestReuse(t *testing.T) {
	url := shared(t)
	how := &Reuse{Options: Options{Template: templateFor(t)},
		PrepareWipe: `CREATE FUNCTION pg_temp.wipe() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
			DROP TABLE IF EXISTS mine;
			RETURN (SELECT count(pg_terminate_backend(pid, 2000)) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction');
		END $$`,
		Wipe:  `SELECT pg_temp.wipe()`,
		Shape: `SELECT count(*)::text FROM pg_class WHERE relname = 'changed'`}
	take := func() *Reusable {
		t.Helper()
		r, err := Take(t.Context(), how)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := take()
	exec1(t, open(t, first.URL), `CREATE TABLE mine (n int)`)
	first.Return()
	second := take()
	if second != first {
		t.Error("the database was not reused")
	}
	if n := one(t, open(t, second.URL), `SELECT count(*)::text FROM pg_class WHERE relname = 'mine'`); n != "0" {
		t.Error("the table of the previous test still exists")
	}
	resource := new(closed)
	second.Resource = resource
	second.Return()
	if second = take(); second != first || *resource != 0 {
		t.Errorf("the resource was closed %d times although no session was ended", *resource)
	}
	busy := open(t, second.URL)
	exec1(t, busy, `BEGIN`)
	second.Return()
	if second = take(); second != first || *resource != 1 {
		t.Errorf("the resource was closed %d times, want 1: a session was ended", *resource)
	}
	exec1(t, open(t, second.URL), `CREATE TABLE changed (n int)`)
	second.Return()
	third := take()
	if third == second {
		t.Error("a database with another schema was reused")
	}
	if n := one(t, open(t, url), `SELECT count(*)::text FROM pg_database WHERE datname = $1`, second.name); n != "0" {
		t.Error("a database with another schema still exists")
	}
	third.Return()
	DropReusable()
	if n := one(t, open(t, url), `SELECT count(*)::text FROM pg_database WHERE datname = $1`, third.name); n != "0" {
		t.Error("the database still exists when the program ends")
	}
}
