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
			generation, err := s.generation(ctx, link.Conn())
			if err == nil {
				s.fence.Start(generation)
			}
			return err
		}))
	})
}

// look refuses a connection to a database that was restored from a backup since it was opened. It reads the generation on
// the first use of a connection: a restore ends all older ones. Behind a pooler, a connection of ours
// is not one to the server, so the generation is read once per second.
func (s *adapter) look(ctx context.Context, conn *pgx.Conn) error {
	if err := s.fence.Err(); err != nil || !s.fence.Started() {
		return err
	}
	key, known := "holdfast generation "+s.schema, conn.PgConn().CustomData()
	if s.pooled {
		now, last := int64(clock.Since(started)), s.looked.Load()
		if last != 0 && now-last < int64(lookEvery) || !s.looked.CompareAndSwap(last, now) {
			return nil
		}
	} else if known[key] == s.fence.Generation() {
		return nil
	}
	var generation int64
	err := s.call(ctx, conn, func(ctx context.Context) (err error) {
		generation, err = s.generation(ctx, conn)
		return err
	})
	if err == nil {
		err = s.fence.Meet(generation)
	}
	if err == nil {
		known[key] = generation
	}
	return err
}

var started = clock.Now()

// generation reads the generation, after a restore that is in progress. The second statement has a newer snapshot than the
// first, which waits for the lock.
func (s *adapter) generation(ctx context.Context, conn *pgx.Conn) (generation int64, err error) {
	lock := fmt.Sprintf("SELECT pg_catalog.pg_advisory_xact_lock_shared(%d)", restoreKey(s.schema))
	look := fill("SELECT coalesce(pg_catalog.max(r.generation), 0) FROM {schema}.restore r", s.schema, "")
	results, err := conn.PgConn().Exec(ctx, lock+"; "+look).ReadAll()
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(string(results[1].Rows[0][0]), &generation)
	return generation, err
}

// restoreKey is the key of the advisory lock that a restore takes, and each first look at a connection shares.
func restoreKey(schema string) int64 { return lockKey(schema) + 1 }

// endOthers ends all other connections to the database, and makes new ones wait at their first look until the transaction
// ends.
func (s *adapter) endOthers(ctx context.Context, tx pgx.Tx) (ended int, err error) {
	if _, err := tx.Exec(ctx, "SELECT pg_catalog.pg_advisory_xact_lock($1)", restoreKey(s.schema)); err != nil {
		return 0, err
	}
	rows, err := tx.Query(ctx, `SELECT pg_catalog.pg_terminate_backend(a.pid, 10000)
		  FROM pg_catalog.pg_stat_activity AS a
		 WHERE a.datname = pg_catalog.current_database() AND a.backend_type = 'client backend' AND a.pid <> pg_catalog.pg_backend_pid()`)
	if err != nil {
		return 0, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[bool])
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42501" {
		return 0, fault.New(fault.DatabaseDenied, "other processes are connected to the database, and this role may not end their connections: stop them, or use their role, a superuser, or a role with pg_signal_backend. Nothing was changed").Wrap(err)
	}
	for _, gone := range all {
		if !gone {
			return 0, fault.New(fault.Unavailable, "a connection to the database could not be ended: stop all processes that use the database, and try again. Nothing was changed")
		}
	}
	return len(all), err
}

// newGeneration moves the database to a new generation. No other connection can write: the tables are locked.
func (s *adapter) newGeneration(ctx context.Context, tx pgx.Tx) (generation int64, err error) {
	err = tx.QueryRow(ctx, fill(`INSERT INTO {schema}.restore (generation, restored_at)
		SELECT greatest(pg_catalog.date_part('epoch', n.now)::bigint - $1, coalesce((SELECT pg_catalog.max(r.generation) FROM {schema}.restore r), 0) + 1), n.now
		  FROM (SELECT pg_catalog.clock_timestamp() + (SELECT c.shift FROM {schema}.clock c) AS now) AS n
		RETURNING generation`, s.schema, ""), store.GenerationsBegin).Scan(&generation)
	if err != nil {
		return 0, err
	}
	text := strings.NewReplacer("{generation}", fmt.Sprint(generation), "{first}", fmt.Sprint(generation*store.GenerationSpan),
		"{command}", store.NewID().String(), "{now}", "(pg_catalog.clock_timestamp() + (SELECT c.shift FROM {schema}.clock c))").Replace(raise)
	return generation, s.exec(ctx, tx, fill(text, s.schema, ""))
}

// raise moves all numbers that must not come again. {first} exceeds each of them.
const raise = `
SET LOCAL enable_seqscan = on;
SET LOCAL enable_bitmapscan = on;
UPDATE {schema}.entity SET epoch = greatest(epoch + 1, {first}) WHERE phase <> 'free';
UPDATE {schema}.step SET epoch = greatest(epoch + 1, {first}) WHERE status <> 'COMPLETED';
UPDATE {schema}.item AS i SET epoch = greatest(i.epoch + 1, {first}), sweeps = greatest(i.sweeps + 1, {first})
  FROM {schema}.batch AS b
 WHERE b.shard = i.shard AND b.workspace = i.workspace AND b.id = i.batch AND b.status NOT IN ('CANCELLED', 'COMPLETED');
UPDATE {schema}.follow SET epoch = greatest(epoch + 1, {first});
UPDATE {schema}.reaction SET base = greatest(base + 1, {first});
UPDATE {schema}.stream SET epoch = greatest(epoch + 1, {first}) WHERE state = 'closing';
UPDATE {schema}.request SET epoch = greatest(epoch + 1, {first}) WHERE state = 'held';
UPDATE {schema}.registry SET revision = greatest(revision + 1, {generation});
INSERT INTO {schema}.registry (shard, workspace, revision)
SELECT w.shard, w.name, {generation} FROM {schema}.workspace AS w
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

DELETE FROM {schema}.node;
DELETE FROM {schema}.session;
`
