package holdfasttest

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/postgres"
)

// reused returns the URL of a database that tests of one process have one after the other.
func reused(t testing.TB, o pgtest.Options) string {
	t.Helper()
	r, err := pgtest.Take(context.Background(), &pgtest.Reuse{Options: o, Wipe: wipe, Shape: shape})
	if err != nil {
		t.Fatalf("postgresql: %v", err)
	}
	if r.Kept == nil {
		r.Kept = crash.Keep(silent{postgres.URL(r.URL)})
	}
	taken.Store(r.URL, r.Kept)
	t.Cleanup(func() {
		taken.Delete(r.URL)
		r.Return()
	})
	return r.URL
}

// taken are what engines have open, by the URL of the database.
var taken sync.Map

// At is the database with a URL from [PostgreSQL]. With [Main], what the first engine of a
// test opens there stays open for the next test: planning its statements on new connections
// takes the server longer than most tests do. Every further engine, and one that is opened
// again, has connections of its own, as another process would.
func At(url string) holdfast.Database {
	if kept, ok := taken.LoadAndDelete(url); ok {
		return kept.(*crash.Kept)
	}
	return postgres.URL(url)
}

// silent is a database whose log outlives the test that opened it.
type silent struct{ store.Database }

func (s silent) Open(ctx context.Context, o store.Options) (store.Store, error) {
	o.Log = slog.New(slog.DiscardHandler)
	return s.Database.Open(ctx, o)
}

// reuses says that the program has [Main].
var reuses atomic.Bool

// Main has tests take the same PostgreSQL databases one after the other, emptied between
// them, and drops them when all tests are over. It is for TestMain, and
// makes tests on PostgreSQL several times faster:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }
func Main(m interface{ Run() int }) interface{ Run() int } {
	reuses.Store(true)
	return main{m}
}

type main struct{ m interface{ Run() int } }

func (m main) Run() int {
	defer pgtest.DropReusable()
	return m.m.Run()
}

// wipe empties the tables. What was there at the beginning, the migrations and the clock,
// stays and is set back.
const wipe = `SET lock_timeout = '2s';
DO $$
DECLARE
    one record;
BEGIN
    -- Whoever is in the middle of something, such as a process that was killed, is sent away.
    PERFORM pg_terminate_backend(a.pid, 2000) FROM pg_stat_activity a
      WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.state <> 'idle';
    FOR one IN SELECT c.relname FROM pg_class c
                WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
                  AND c.relname NOT IN ('migration', 'clock') LOOP
        EXECUTE format('DELETE FROM holdfast.%I', one.relname);
    END LOOP;
    UPDATE holdfast.clock SET shift = interval '0', movable = true;
    IF EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace)
       OR EXISTS (SELECT FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace)
       OR EXISTS (SELECT FROM pg_type t WHERE t.typnamespace = 'public'::regnamespace) THEN
        DROP SCHEMA public CASCADE;
        CREATE SCHEMA public AUTHORIZATION pg_database_owner;
        GRANT USAGE ON SCHEMA public TO PUBLIC;
    END IF;
END $$`

// shape digests what no test may change: columns, indexes, constraints, functions,
// triggers, settings, and the schemas that there are.
const shape = `SELECT md5(string_agg(part, ',' ORDER BY part)) FROM (
    SELECT concat_ws(' ', c.relname, c.relkind, c.reloptions::text, c.relacl::text, a.attname, a.atttypid, a.attnotnull) AS part
      FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
     WHERE c.relnamespace = 'holdfast'::regnamespace
    UNION ALL SELECT concat_ws(' ', n.conname, n.contype, n.convalidated) FROM pg_constraint n WHERE n.connamespace = 'holdfast'::regnamespace
    UNION ALL SELECT concat_ws(' ', p.proname, p.prosrc) FROM pg_proc p WHERE p.pronamespace = 'holdfast'::regnamespace
    UNION ALL SELECT concat_ws(' ', g.tgname, g.tgenabled) FROM pg_trigger g WHERE NOT g.tgisinternal
    UNION ALL SELECT concat_ws(' ', s.setconfig::text) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = current_database()
    UNION ALL SELECT concat_ws(' ', x.extname) FROM pg_extension x
    UNION ALL SELECT concat_ws(' ', m.*::text) FROM holdfast.migration m
    UNION ALL SELECT n.nspname FROM pg_namespace n WHERE n.nspname NOT LIKE 'pg\_%') o`
