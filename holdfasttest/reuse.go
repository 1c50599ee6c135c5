package holdfasttest

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/crash"
	"github.com/holdfast-go/holdfast/internal/pgtest"
	"github.com/holdfast-go/holdfast/internal/store"
	"github.com/holdfast-go/holdfast/postgres"
	"github.com/holdfast-go/holdfast/sqlite"
)

// reused returns the URL of a database that is used by one test of the process after another.
func reused(t testing.TB, o pgtest.Options) string {
	t.Helper()
	r, err := pgtest.Take(context.Background(), &pgtest.Reuse{Options: o, PrepareWipe: prepareWipe, Wipe: wipe, Shape: shape})
	if err != nil {
		t.Fatalf("postgresql: %v", err)
	}
	if r.Resource == nil {
		r.Resource = &shelf{where: r.URL}
	}
	r.Resource.(*shelf).lend(t, r.Return)
	return r.URL
}

// At returns the database at a URL from [PostgreSQL] or a path from [SQLite]. With [Main], connections that the
// engines of a test open stay open for the next test, because preparing their statements on new connections takes
// longer than most tests. Within a test, each opened or reopened engine gets connections that no other engine of the
// test has used, as in a separate process.
func At(where string) holdfast.Database {
	db := at(where)
	if s, ok := lent.Load(where); ok {
		db = lending{db, s.(*shelf)}
	}
	return store.HandleDatabase(db)
}

// lending is a database whose Open returns connections that the test has not used yet.
type lending struct {
	store.Database
	from *shelf
}

func (l lending) Open(ctx context.Context, o store.Options) (store.Store, error) {
	return l.from.next().Open(ctx, o)
}

func at(where string) store.Database {
	if strings.Contains(where, "://") {
		return store.DatabaseOf(postgres.URL(where))
	}
	return store.DatabaseOf(sqlite.File(where))
}

// lent maps the URLs and paths of the databases in use by tests to their shelves.
var lent sync.Map

// A shelf stores the open connections of a database for the engines of the next test.
type shelf struct {
	where string

	mu   sync.Mutex
	open []*crash.OpenDatabase
	used int // how many of them the engines of the current test have got
}

// mostOpen limits the sets of connections that stay open for the next test.
const mostOpen = 3

// lend makes the stored connections available to the engines of a test. When the test ends, it returns the database
// to the pool.
func (s *shelf) lend(t testing.TB, giveBack func()) {
	lent.Store(s.where, s)
	t.Cleanup(func() {
		lent.Delete(s.where)
		s.mu.Lock()
		s.used = 0
		s.mu.Unlock()
		giveBack()
	})
}

// next returns connections that the test has not used yet.
func (s *shelf) next() store.Database {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == mostOpen {
		return at(s.where)
	}
	if s.used == len(s.open) {
		s.open = append(s.open, crash.StayOpen(silent{at(s.where)}))
	}
	s.used++
	return s.open[s.used-1]
}

// Close closes all stored connections.
func (s *shelf) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, k := range s.open {
		err = errors.Join(err, k.Close())
	}
	return err
}

// silent is a database that logs nothing, because its connections outlive the test that opened them.
type silent struct{ store.Database }

func (s silent) Open(ctx context.Context, o store.Options) (store.Store, error) {
	o.Log = slog.New(slog.DiscardHandler)
	return s.Database.Open(ctx, o)
}

// reuses reports whether the test program uses [Main].
var reuses atomic.Bool

// Main makes tests reuse the same databases, emptied between tests, and drops them after all tests. This makes tests
// several times faster. Use it in TestMain:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(holdfasttest.Main(m)) }
func Main(m interface{ Run() int }) interface{ Run() int } {
	reuses.Store(true)
	return main{m}
}

type main struct{ m interface{ Run() int } }

func (m main) Run() int {
	defer pgtest.DropReusable()
	defer dropFiles()
	return m.m.Run()
}

// prepareWipe creates the function that empties the tables. The initial rows stay: the migrations, the retention, the clock, which
// is reset, and the secret. It is a function because functions cache their plans.
const prepareWipe = `SET lock_timeout = '2s';
DO $$ BEGIN
    EXECUTE (SELECT 'CREATE FUNCTION pg_temp.wipe() RETURNS bigint LANGUAGE plpgsql AS $body$ DECLARE own text; ended bigint; BEGIN
        -- A session that is in the middle of something, such as a process that was killed, is sent away.
        SELECT count(pg_terminate_backend(a.pid, 2000)) INTO ended FROM pg_stat_activity a
          WHERE a.datname = current_database() AND a.pid <> pg_backend_pid() AND a.state <> ''idle'';
        UPDATE holdfast.clock SET shift = interval ''0'', movable = true;'
        || string_agg(format('DELETE FROM holdfast.%I;', c.relname), ' ')
        -- One by one: a schema that is dropped and made again has every statement of everyone planned anew.
        || 'SELECT string_agg(format(''DROP %s IF EXISTS %s CASCADE;'', o.kind, o.name), '' '') INTO own FROM (
               SELECT CASE c.relkind WHEN ''v'' THEN ''VIEW'' WHEN ''m'' THEN ''MATERIALIZED VIEW'' WHEN ''S'' THEN ''SEQUENCE'' ELSE ''TABLE'' END AS kind, format(''public.%I'', c.relname) AS name
                 FROM pg_class c WHERE c.relnamespace = ''public''::regnamespace AND c.relkind IN (''r'', ''p'', ''v'', ''m'', ''S'')
               UNION ALL SELECT ''ROUTINE'', p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = ''public''::regnamespace
               UNION ALL SELECT ''TYPE'', format(''public.%I'', t.typname) FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
                WHERE t.typnamespace = ''public''::regnamespace AND (t.typtype IN (''d'', ''e'') OR c.relkind = ''c'')) o;
        IF own IS NOT NULL THEN
            EXECUTE own;
        END IF;
        RETURN ended;
    END $body$'
    FROM pg_class c
    WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname NOT IN ('migration', 'clock', 'secret', 'retention'));
END $$`

const wipe = `SELECT pg_temp.wipe()`

// shape computes a digest of everything that a test must not change: columns, indexes, constraints, functions,
// triggers, settings and the existing schemas. The digest is a sum, because sorting the parts would take three times
// as long as the rest.
const shape = `SELECT concat_ws(' ', count(*), sum(hashtextextended(part, 0))) FROM (
    SELECT concat_ws(' ', c.relname, c.relkind, c.reloptions::text, c.relacl::text, a.attname, a.atttypid, a.attnotnull) AS part
      FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
     WHERE c.relnamespace = 'holdfast'::regnamespace
    UNION ALL SELECT concat_ws(' ', n.conname, n.contype, n.convalidated) FROM pg_constraint n WHERE n.connamespace = 'holdfast'::regnamespace
    UNION ALL SELECT concat_ws(' ', p.proname, p.prosrc) FROM pg_proc p WHERE p.pronamespace = 'holdfast'::regnamespace
    UNION ALL SELECT concat_ws(' ', g.tgname, g.tgenabled) FROM pg_trigger g WHERE NOT g.tgisinternal
    UNION ALL SELECT concat_ws(' ', s.setconfig::text) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = current_database()
    UNION ALL SELECT concat_ws(' ', x.extname) FROM pg_extension x
    UNION ALL SELECT concat_ws(' ', m.*::text) FROM holdfast.migration m
    UNION ALL SELECT concat_ws(' ', 'public', c.relname) FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws(' ', 'public', t.typname) FROM pg_type t WHERE t.typnamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws(' ', 'public', p.proname) FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws(' ', 'public', o.oprname) FROM pg_operator o WHERE o.oprnamespace = 'public'::regnamespace
    UNION ALL SELECT concat_ws(' ', 'public', n.nspacl::text) FROM pg_namespace n WHERE n.nspname = 'public'
    UNION ALL SELECT s.value::text FROM holdfast.secret s
    UNION ALL SELECT concat_ws(' ', 'retention', r.by_default) FROM holdfast.retention r
    UNION ALL SELECT n.nspname FROM pg_namespace n WHERE n.nspname NOT LIKE 'pg\_%') o`
