package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-go/holdfast/fault"
	"github.com/holdfast-go/holdfast/internal/clock"
	"github.com/holdfast-go/holdfast/internal/store"
)

// Fence returns the fence of the store.
func (s *adapter) Fence() *store.Fence { return s.fence }

// lookEvery is how often the generation is read if the connections are pooled.
const lookEvery = time.Second

func (s *adapter) startFence(ctx context.Context) error {
	return store.Retry(ctx, func() error {
		return s.fault(s.bounded(ctx, s.callTimeout, func(ctx context.Context) error {
			link, err := s.pool.Acquire(ctx)
			if err != nil {
				return err
			}
			defer link.Release()
			generation, _, err := s.generation(ctx, link.Conn())
			if err == nil {
				s.fence.Start(generation)
			}
			return err
		}))
	})
}

// look refuses a connection to a database that was restored from a backup since it was opened. It reads the generation on
// the first use of a connection: a restore ends all older ones. Behind a pooler, a connection of ours
// is not one to the server, so the generation is read once per second, and other callers wait for that.
func (s *adapter) look(ctx context.Context, conn *pgx.Conn) error {
	if err := s.fence.Err(); err != nil || !s.fence.Started() {
		return err
	}
	if s.pooled {
		if s.lookedLately() {
			return nil
		}
		s.looking.Lock()
		defer s.looking.Unlock()
		if s.lookedLately() {
			return s.fence.Err()
		}
	}
	key, known := "holdfast generation "+s.schema, conn.PgConn().CustomData()
	if !s.pooled && known[key] == s.fence.Generation() {
		return nil
	}
	begun := clock.Since(started)
	var generation int64
	var current bool
	err := s.call(ctx, conn, func(ctx context.Context) (err error) {
		generation, current, err = s.generation(ctx, conn)
		return err
	})
	if err == nil {
		err = s.fence.Meet(generation)
	}
	if err == nil && current {
		s.looked.Store(int64(begun))
		known[key] = generation
	}
	return err
}

func (s *adapter) lookedLately() bool {
	last := s.looked.Load()
	return last != 0 && clock.Since(started)-time.Duration(last) < lookEvery
}

var started = clock.Now()

// generation reads the generation, after a restore that is in progress. The second statement has a newer snapshot than the
// first, which waits for the lock; unless it is part of a user's transaction with one snapshot, where current is false.
func (s *adapter) generation(ctx context.Context, conn *pgx.Conn) (generation int64, current bool, err error) {
	lock := fmt.Sprintf("SELECT pg_catalog.pg_advisory_xact_lock_shared(%d)", restoreKey(s.schema))
	look := fill("SELECT coalesce(pg_catalog.max(r.generation), 0), pg_catalog.current_setting('transaction_isolation') = 'read committed' FROM {schema}.restore r", s.schema, "")
	results, err := conn.PgConn().Exec(ctx, lock+"; "+look).ReadAll()
	if err != nil {
		return 0, false, err
	}
	row := results[1].Rows[0]
	_, err = fmt.Sscan(string(row[0]), &generation)
	return generation, string(row[1]) == "t", err
}

// restoreKey is the key of the advisory lock that a restore takes, and each first look at a connection shares.
func restoreKey(schema string) int64 { return lockKey(schema) + 1 }

// endOthers ends all other connections to the database, and makes new ones wait at their first look until the transaction
// ends. A first look inside a user's transaction keeps the shared lock until that ends, so connections are ended before the lock is
// taken, and after it those that began meanwhile.
func (s *adapter) endOthers(ctx context.Context, tx pgx.Tx) (ended int, err error) {
	if ended, err = s.endAll(ctx, tx); err != nil {
		return ended, err
	}
	if _, err := tx.Exec(ctx, "SELECT pg_catalog.pg_advisory_xact_lock($1)", restoreKey(s.schema)); err != nil {
		return ended, err
	}
	more, err := s.endAll(ctx, tx)
	return ended + more, err
}

// endAll ends the connections that exist. The backend type of a connection of another role may be hidden.
func (s *adapter) endAll(ctx context.Context, tx pgx.Tx) (ended int, err error) {
	type session struct {
		pid   int32
		since time.Time
	}
	list := func() (map[session]bool, error) {
		if _, err := tx.Exec(ctx, "SELECT pg_catalog.pg_stat_clear_snapshot()"); err != nil {
			return nil, err
		}
		rows, err := tx.Query(ctx, `SELECT a.pid, coalesce(a.backend_start, 'epoch')
			  FROM pg_catalog.pg_stat_activity AS a
			 WHERE a.datname = pg_catalog.current_database() AND a.usesysid IS NOT NULL AND coalesce(a.backend_type, 'client backend') = 'client backend'
			   AND a.pid <> pg_catalog.pg_backend_pid()`)
		if err != nil {
			return nil, err
		}
		all := make(map[session]bool)
		var one session
		_, err = pgx.ForEachRow(rows, []any{&one.pid, &one.since}, func() error { all[one] = true; return nil })
		return all, err
	}
	found, err := list()
	if err != nil {
		return 0, err
	}
	for one := range found {
		_, err := tx.Exec(ctx, "SELECT pg_catalog.pg_terminate_backend($1, 10000)", one.pid)
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42501" {
			return 0, fault.New(fault.DatabaseDenied, "other processes are connected to the database, and this role may not end their connections: stop them, or use a superuser, or a role that has their role and pg_signal_backend. Nothing was changed").Wrap(err)
		}
		if err != nil {
			return 0, err
		}
	}
	left, err := list()
	for one := range left {
		if found[one] {
			return 0, fault.New(fault.Unavailable, "a connection to the database could not be ended within 10 s: stop all processes that use the database, and try again. Nothing was changed")
		}
	}
	return len(found), err
}

// newGeneration moves the database to a new generation. No other connection can write: the tables are locked.
func (s *adapter) newGeneration(ctx context.Context, tx pgx.Tx) (generation int64, err error) {
	var after bool
	err = tx.QueryRow(ctx, fill(`INSERT INTO {schema}.restore (generation, restored_at)
		SELECT greatest(pg_catalog.date_part('epoch', n.now)::bigint - $1, coalesce((SELECT pg_catalog.max(r.generation) FROM {schema}.restore r), 0) + 1), n.now
		  FROM (SELECT pg_catalog.clock_timestamp() + (SELECT c.shift FROM {schema}.clock c) AS now) AS n
		RETURNING generation, pg_catalog.date_part('epoch', restored_at)::bigint > $1`, s.schema, ""), store.GenerationsBegin).Scan(&generation, &after)
	if err == nil && !after { // by the clock of the server
		err = store.ErrClockBefore
	}
	if err != nil {
		return 0, err
	}
	text := strings.NewReplacer("{generation}", fmt.Sprint(generation), "{first}", fmt.Sprint(generation*store.GenerationSpan),
		"{jump}", fmt.Sprint(store.RevisionJump(generation))+"::bigint",
		"{command}", store.NewID().String(), "{now}", "(pg_catalog.clock_timestamp() + (SELECT c.shift FROM {schema}.clock c))").Replace(raise)
	return generation, s.exec(ctx, tx, fill(text, s.schema, ""))
}

// raise moves all numbers that must not come again: {first} exceeds those of leases and scopes, and {jump} is more than the revisions that a
// registry can have lost. A reaction's epochs begin at the revision of its registration, shifted by 32 bits.
const raise = `
SET LOCAL enable_seqscan = on;
SET LOCAL enable_bitmapscan = on;
UPDATE {schema}.entity SET epoch = greatest(epoch + 1, {first}) WHERE phase <> 'free';
UPDATE {schema}.step SET epoch = greatest(epoch + 1, {first}) WHERE status <> 'COMPLETED';
UPDATE {schema}.item AS i SET epoch = greatest(i.epoch + 1, {first}), sweeps = greatest(i.sweeps + 1, {first})
  FROM {schema}.batch AS b
 WHERE b.shard = i.shard AND b.workspace = i.workspace AND b.id = i.batch AND b.status NOT IN ('CANCELLED', 'COMPLETED');
UPDATE {schema}.follow SET epoch = epoch + ({jump} << 32);
UPDATE {schema}.reaction SET base = base + ({jump} << 32);
UPDATE {schema}.reaction SET waits = NULL WHERE state <> 'live'; -- for transactions of the server that was backed up
UPDATE {schema}.stream SET epoch = greatest(epoch + 1, {first}) WHERE state = 'closing';
UPDATE {schema}.request SET epoch = greatest(epoch + 1, {first}) WHERE state = 'held';
UPDATE {schema}.registry SET revision = revision + {jump};
INSERT INTO {schema}.registry (shard, workspace, revision)
SELECT w.shard, w.name, {jump} FROM {schema}.workspace AS w
    ON CONFLICT (shard, workspace) DO NOTHING;

INSERT INTO {schema}.feed_gap (shard, workspace, generation, last, next)
SELECT q.shard, q.workspace, {generation}, q.last, greatest(q.last + 1, {first}) FROM {schema}.sequence AS q;
UPDATE {schema}.sequence SET last = greatest(last + 1, {first});

-- Tombstones are deleted: new scopes begin above all generations.
DELETE FROM {schema}.scope WHERE state IS NULL;
UPDATE {schema}.scope SET version = greatest(version + 1, {first}), born = greatest(version + 1, {first});
INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
SELECT s.shard, '{command}', pg_catalog.row_number() OVER (PARTITION BY s.shard ORDER BY s.workspace, s.kind, s.id) - 1, s.workspace,
       '$scope/' || s.kind || '/' || s.id, s.version, 'restored', pg_catalog.json_build_object('state', s.state), {now}
  FROM {schema}.scope AS s;
UPDATE {schema}.follow AS f SET due = s.version, due_at = {now}, rank = {now}
  FROM {schema}.scope AS s, {schema}.reaction AS r
 WHERE f.stream = '$scope/' || s.kind || '/' || s.id AND f.shard = s.shard AND f.workspace = s.workspace
   AND r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction AND r.source = 'history' AND r.state <> 'removed';
INSERT INTO {schema}.due (shard, reaction, workspace, stream, version)
SELECT DISTINCT d.shard, d.reaction, d.workspace, d.stream, s.version
  FROM {schema}.due AS d JOIN {schema}.scope AS s ON s.shard = d.shard AND s.workspace = d.workspace AND d.stream = '$scope/' || s.kind || '/' || s.id
    ON CONFLICT (shard, reaction, workspace, stream, version) DO NOTHING;

UPDATE {schema}.secret SET value = pg_catalog.uuid_send(pg_catalog.gen_random_uuid()) || pg_catalog.uuid_send(pg_catalog.gen_random_uuid());
DELETE FROM {schema}.node;
DELETE FROM {schema}.session;
`
