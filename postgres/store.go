package postgres

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

// docs/decisions/030 explains why the statements compare shards by = ANY (ARRAY[…]).
//
//go:embed sql/*/*.sql migrations/*.sql
var files embed.FS

// adapter is an open PostgreSQL database. It is safe for concurrent use.
type adapter struct {
	log     *slog.Logger
	schema  string
	version string
	owned   bool // the pool is ours, not the program's
	plain   bool // for tests: never run a fast statement
	pooled  bool // connections go through a pooler in transaction mode

	pool *pgxpool.Pool
	// quick serves groups, and single commands that are first tried without waiting. Its connections have a
	// short lock timeout.
	quick *pgxpool.Pool
	// patient limits how many connections of the pool wait for locks.
	patient chan struct{}
	grouper *store.Grouper
	// pairs groups pairs of commands by themselves, because they need a transaction.
	pairs *store.Grouper
	// callTimeout limits each database call.
	callTimeout time.Duration
	alarm       clock.Alarm
	orphans     struct {
		sync.Mutex
		all []orphan
	}
	endings sync.WaitGroup // terminations of orphans
	// closing ends the repetition of terminations.
	closing     context.Context
	stopEndings context.CancelFunc
	// vital serves calls that must not wait behind others: a lease that cannot be renewed because
	// the pool is busy is lost.
	vital *pgxpool.Pool
	verbs map[string]verb
	fence *store.Fence
	// looked is when the generation was read last, in ns since the process started, and looking is held meanwhile, if connections
	// are pooled.
	looked  atomic.Int64
	looking sync.Mutex

	migrations fs.FS
}

var _ store.Store = (*adapter)(nil)

// tokens replaces the tokens of the files. The time is the server's when the expression is
// evaluated, not at the start of the transaction, which may be long before. Tests can shift it in a
// database that allows that; other databases do not pay for the lookup.
//
// A general statement has several variants in one file ([form]). Alone it waits for the rows it needs and for the
// lock to insert a missing one. In a group it waits for neither: it skips locked rows, and leaves
// those members to run alone.
func tokens(schema string, movable bool, form form) *strings.Replacer {
	quoted := pgx.Identifier{schema}.Sanitize()
	now := "pg_catalog.clock_timestamp()"
	if movable {
		now = "(pg_catalog.clock_timestamp() + (SELECT c.shift FROM " + quoted + ".clock c))"
	}
	return strings.NewReplacer(
		"{schema}", quoted,
		"{now}", now,
		"{current_revision}", "m.revision = coalesce((SELECT g.revision FROM "+quoted+".registry g WHERE g.shard = m.shard AND g.workspace = m.workspace), 0)",
		"{due_notices}", form.dueNotices(quoted),
		"{skip}", form.skip, "{enter}", form.enter, "{entered}", form.entered)
}

// dueNotices ends the CTE "written" of a statement, and inserts the due notices of the reactions that
// follow the written events. Due notices are only inserted, so no statement waits here.
func dueNotices(schema string) string {
	return written + `, marked AS (
    INSERT INTO ` + schema + `.due (shard, reaction, workspace, stream, version)
    SELECT w.shard, r.reaction, w.workspace, w.stream, pg_catalog.max(w.version)
      FROM written w JOIN m ON m.shard = w.shard AND m.workspace = w.workspace AND m.command = w.id
     CROSS JOIN LATERAL pg_catalog.jsonb_array_elements_text(m.marks::jsonb) AS r(reaction)
     GROUP BY w.shard, r.reaction, w.workspace, w.stream
)`
}

// form is a variant of the general statements: the replacements of its tokens.
type form struct {
	skip, enter, entered string
	dueNotices           func(schema string) string
}

// noDueNotices is for members whose events no reaction follows: the statement is then without the CTE
// that inserts due notices, which costs a tenth of the statement even if it inserts none.
func noDueNotices(string) string { return written }

// written ends the CTE of a statement that writes events.
const written = "RETURNING shard, id, workspace, stream, version\n)"

var forms = map[string]form{
	"":                {"", "pg_catalog.pg_advisory_xact_lock", "::text IS NOT NULL", dueNotices},
	".unmarked":       {"", "pg_catalog.pg_advisory_xact_lock", "::text IS NOT NULL", noDueNotices},
	".group":          {" SKIP LOCKED", "pg_catalog.pg_try_advisory_xact_lock", "", dueNotices},
	".group.unmarked": {" SKIP LOCKED", "pg_catalog.pg_try_advisory_xact_lock", "", noDueNotices},
}

// Texts returns the SQL of every verb in the schema: x as it runs alone, x.fast its fast form,
// x.group for a group, and x.unmarked and x.group.unmarked if no reaction follows its events.
func (d opener) Texts() (store.Texts, error) { return texts(d.schema, true) }

func texts(schema string, movable bool) (store.Texts, error) {
	filled, err := filled()
	if err != nil {
		return nil, err
	}
	texts := make(store.Texts, len(filled))
	plain := tokens(schema, movable, forms[""])
	for name, text := range filled {
		texts[name] = plain.Replace(text)
	}
	for name, form := range forms {
		tokens := tokens(schema, movable, form)
		for _, d := range store.Decls() {
			switch {
			case d.NoWait != "":
				if name == ".group" { // the form that never waits
					texts[d.Name] = tokens.Replace(filled[d.NoWait])
				}
			case name != "" && (d.Group || !strings.HasPrefix(name, ".group")):
				if text := tokens.Replace(filled[d.Name]); text != texts[d.Name] {
					texts[d.Name+name] = text
				}
			}
		}
	}
	return texts, nil
}

// prepare loads the SQL of the verbs and makes the server parse every statement: a schema without a
// table or a column is detected here, not at the first call.
func (s *adapter) prepare(ctx context.Context) error {
	movable, err := s.movable(ctx)
	if err != nil {
		return err
	}
	all := loadStatements(s.schema, movable)
	if all.err != nil {
		return all.err
	}
	s.verbs = all.verbs
	return store.Retry(ctx, func() error { return s.parse(ctx, all) })
}

// statements is the SQL of every verb in a schema. The verbs linked into a program do not change
// while it runs, so it is built once per process.
type statements struct {
	texts store.Texts
	verbs map[string]verb
	err   error
}

type statementsKey struct {
	schema  string
	movable bool
}

var allStatements sync.Map // statementsKey → func() *statements

func loadStatements(schema string, movable bool) *statements {
	load, _ := allStatements.LoadOrStore(statementsKey{schema, movable},
		sync.OnceValue(func() *statements { return newStatements(schema, movable) }))
	return load.(func() *statements)()
}

func newStatements(schema string, movable bool) *statements {
	texts, err := texts(schema, movable)
	if err == nil {
		err = texts.Missing(store.Decls())
	}
	if err != nil {
		return &statements{err: err}
	}
	all := &statements{texts: texts, verbs: make(map[string]verb, len(texts))}
	for _, d := range store.Decls() {
		v := verb{text: texts[d.Name], fast: texts[d.Name+".fast"], group: texts[d.Name+".group"],
			unmarked: texts[d.Name+".unmarked"], groupUnmarked: texts[d.Name+".group.unmarked"]}
		v.group = cmp.Or(v.group, v.text)
		v.unmarked, v.groupUnmarked = cmp.Or(v.unmarked, v.text), cmp.Or(v.groupUnmarked, v.group)
		all.verbs[d.Name] = v
	}
	return all
}

// movable reports whether tests may shift this database's time.
func (s *adapter) movable(ctx context.Context) (yes bool, err error) {
	err = store.Retry(ctx, func() error {
		text := "SELECT movable FROM " + pgx.Identifier{s.schema, "clock"}.Sanitize()
		return s.fault(s.bounded(ctx, s.callTimeout, func(ctx context.Context) error { return s.pool.QueryRow(ctx, text).Scan(&yes) }))
	})
	return yes, err
}

// parse makes the server parse every statement, unless the schema is exactly what the migrations
// create: tests parse the statements against that one. Parsing takes a hundred milliseconds of the
// server's time, ten times the rest of opening.
func (s *adapter) parse(ctx context.Context, all *statements) error {
	link, err := s.acquire(ctx, s.pool)
	if err != nil {
		return err
	}
	defer link.Release()
	var shape string
	err = s.call(ctx, link.Conn(), func(ctx context.Context) error { return link.QueryRow(ctx, shapeSQL, s.schema).Scan(&shape) })
	if err != nil || shape == migratedShape {
		return s.fault(err)
	}
	for _, text := range all.texts {
		err := s.call(ctx, link.Conn(), func(ctx context.Context) error {
			_, err := link.Conn().PgConn().Prepare(ctx, "", text, nil)
			return err
		})
		if err != nil {
			return s.fault(err)
		}
	}
	return nil
}

// migratedShape is the shape of a schema after all migrations. TestTheShapeOfASchema prints the new
// value after a migration changes it.
const migratedShape = "605faa3b730f3fb5be181da6ed4bbd9f"

// shapeSQL digests what parsing depends on in a schema: the columns and keys of its relations and
// the signatures of its functions. It does not depend on the name of the schema.
const shapeSQL = `SELECT pg_catalog.md5(coalesce(pg_catalog.string_agg(o.part, ',' ORDER BY o.part COLLATE "C"), ''))
  FROM (SELECT pg_catalog.concat_ws(' ', c.relname, c.relkind, a.attname, a.atttypid, a.attidentity, a.attgenerated) AS part
          FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
         WHERE c.relnamespace = pg_catalog.to_regnamespace(pg_catalog.quote_ident($1))::oid AND a.attnum > 0 AND NOT a.attisdropped
         UNION ALL
        SELECT pg_catalog.concat_ws(' ', c.relname, n.contype, n.conkey)
          FROM pg_catalog.pg_constraint n JOIN pg_catalog.pg_class c ON c.oid = n.conrelid
         WHERE n.connamespace = pg_catalog.to_regnamespace(pg_catalog.quote_ident($1))::oid AND n.contype IN ('p', 'u')
         UNION ALL
        SELECT pg_catalog.concat_ws(' ', p.proname, p.prokind, p.proargtypes, p.prorettype)
          FROM pg_catalog.pg_proc p WHERE p.pronamespace = pg_catalog.to_regnamespace(pg_catalog.quote_ident($1))::oid) o`

// Do runs a command and commits it: a write is one statement in one round trip, which is its own
// transaction and may serve other callers too.
func (s *adapter) Do(ctx context.Context, c store.Command) error {
	d := c.Decl()
	if _, pair := c.(*store.Pair); pair {
		if s.pairs == nil || !d.Group {
			return store.ErrUnpaired
		}
		return s.pairs.Do(ctx, c)
	}
	if s.grouper != nil && (d.Group || d.Serial) {
		return s.grouper.Do(ctx, c)
	}
	return s.alone(ctx, c)
}

// alone runs a command by itself.
func (s *adapter) alone(ctx context.Context, c store.Command) error {
	return store.Retry(ctx, func() error { return s.doOnce(ctx, c) })
}

// patiently runs a command that could not be served at once, and may have to wait for a lock. The
// lock is usually free by now, so it is first tried briefly, and repeatedly while all connections
// that may wait are in use.
func (s *adapter) patiently(ctx context.Context, c store.Command) error {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		if err := s.single(ctx, c); err != store.ErrAlone {
			return err
		}
		select {
		case s.patient <- struct{}{}:
			defer func() { <-s.patient }()
			return s.alone(ctx, c)
		default:
		}
		if err := clock.Wait(ctx, clock.Jitter(pause)); err != nil {
			return err
		}
	}
}

// doOnce takes a connection first: an error up to then proves that nothing was written. After that
// an error of a write may have an unknown outcome.
func (s *adapter) doOnce(ctx context.Context, c store.Command) error {
	pool := s.pool
	if c.Decl().Lane == store.Vital {
		pool = s.vital
	}
	link, err := s.acquire(ctx, pool)
	if err != nil {
		return err
	}
	defer link.Release()
	if c.Decl().Slow {
		return s.fault(s.callFor(ctx, store.SlowLimit, link.Conn(), func(ctx context.Context) error { return s.runSlow(ctx, link, c) }))
	}
	err = s.call(ctx, link.Conn(), func(ctx context.Context) error { return s.run(ctx, link, c) })
	if c.Decl().Lane == store.Write {
		return lost(err)
	}
	return s.fault(err)
}

// runSlow runs a read with a longer time limit, on the server too.
func (s *adapter) runSlow(ctx context.Context, link *pgxpool.Conn, c store.Command) error {
	return pgx.BeginTxFunc(ctx, link, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL statement_timeout = %d", store.SlowLimit.Milliseconds())); err != nil {
			return err
		}
		return s.run(ctx, tx, c)
	})
}

// Update runs f in one transaction, and runs it again if the transaction lost to another one or its
// connection broke before the commit.
func (s *adapter) Update(ctx context.Context, f func(context.Context, store.Conn) error) error {
	return store.Retry(ctx, func() error { return s.updateOnce(ctx, f) })
}

func (s *adapter) updateOnce(ctx context.Context, f func(context.Context, store.Conn) error) error {
	link, err := s.acquire(ctx, s.pool)
	if err != nil {
		return err
	}
	defer link.Release()
	var tx pgx.Tx
	err = s.call(ctx, link.Conn(), func(ctx context.Context) (err error) {
		tx, err = link.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
		return err
	})
	if err != nil {
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "0A000" { // "cannot set transaction read-write mode during recovery"
			return fault.New(fault.DatabaseReadOnly, "the database is read-only: connect to the primary").Wrap(err)
		}
		return s.fault(err)
	}
	defer s.rollback(ctx, tx, clock.Now()) // no effect after a commit
	c := &conn{store: s, tx: tx}
	if err = f(ctx, c); err == nil {
		err = c.failed
	}
	if err != nil {
		return gaveWay(err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return lost(s.call(ctx, link.Conn(), tx.Commit))
}

// rollback ends a transaction even if the caller's context has ended. If that broke the connection,
// the server may not have received the rollback.
func (s *adapter) rollback(ctx context.Context, tx transaction, begun time.Time) {
	if tx.Conn().IsClosed() && ctx.Err() != nil {
		s.terminate(tx.Conn().PgConn().PID(), clock.Since(begun))
	}
	_ = s.call(context.WithoutCancel(ctx), tx.Conn(), tx.Rollback)
}

// Version returns the name of the database and its version.
func (s *adapter) Version() string { return s.version }

// Close waits for calls in flight and closes every connection. A pool of the program stays open.
func (s *adapter) Close() error {
	s.stopEndings()
	s.endings.Wait()
	for _, p := range []*pgxpool.Pool{s.vital, s.quick} {
		if p != nil {
			p.Close()
		}
	}
	if s.owned && s.pool != nil {
		s.pool.Close()
	}
	return nil
}

func (s *adapter) fault(err error) error { return mapError(err) }

// Pool returns how many connections are in use, and the maximum.
func (s *adapter) Pool() (busy, size int) {
	for _, st := range s.poolStats() {
		busy, size = busy+int(st.AcquiredConns()), size+int(st.MaxConns())
	}
	return busy, size
}

// PoolWaits returns how often callers have waited for a connection, and how long in total.
func (s *adapter) PoolWaits() (n int64, total time.Duration) {
	for _, st := range s.poolStats() {
		n, total = n+st.EmptyAcquireCount(), total+st.EmptyAcquireWaitTime()
	}
	return n, total
}

func (s *adapter) poolStats() (all []*pgxpool.Stat) {
	for _, p := range []*pgxpool.Pool{s.pool, s.quick, s.vital} {
		if p != nil {
			all = append(all, p.Stat())
		}
	}
	return all
}
