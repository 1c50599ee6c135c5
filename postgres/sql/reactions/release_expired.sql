-- Releases expired leases and increments their epochs, so that a holder that returns cannot
-- end them. A lease whose remote holder never reported is counted as a lost hand-out, not as
-- a crash. A crash counts against a stream only if the holder had no other stream or, after
-- a crash, no other crashed one; otherwise the streams of the holder become a crash group,
-- or their group is halved. Streams whose hand-out was lost are not in the group. A stream
-- with a requested reset is reset.
-- A list of unknown length meets a table of unknown size here, so nothing is joined: each
-- row is looked up by its key, and changed through ON CONFLICT.
-- :items a JSON list of {w: workspace, r: reaction, s: stream, e: epoch, d: pause after a lost hand-out in ms}
WITH a AS MATERIALIZED (
    SELECT q.item ->> 'w'::text AS workspace, q.item ->> 'r'::text AS reaction, q.item ->> 's'::text AS stream, (q.item ->> 'e'::text)::bigint AS epoch,
           coalesce((q.item ->> 'd'::text)::bigint, 0)::float8 * interval '1 ms' AS pause
      FROM pg_catalog.jsonb_array_elements(:items::jsonb) AS q(item)
     WHERE :workspace IS NOT NULL
     ORDER BY (q.item ->> 'w'::text) COLLATE "C", (q.item ->> 'r'::text) COLLATE "C", (q.item ->> 's'::text) COLLATE "C"
), cur AS MATERIALIZED (
    SELECT f.shard, f.workspace, f.reaction, f.stream, f.watermark, f.due, f.due_at, f.rank, f.deaths, f.crash_group, f.generation, f.reset_requested, f.quiet, f.lost, f.holder, f.epoch, f.until, a.epoch AS wanted, a.pause
      FROM a
     CROSS JOIN LATERAL (
           SELECT x.shard, x.workspace, x.reaction, x.stream, x.watermark, x.due, x.due_at, x.rank, x.deaths, x.crash_group, x.generation, x.reset_requested, x.quiet, x.lost, x.holder, x.epoch, x.until
             FROM {schema}.follow x
            WHERE x.shard = :shard AND x.workspace = a.workspace AND x.reaction = a.reaction AND x.stream = a.stream
            LIMIT 1
              FOR UPDATE SKIP LOCKED) AS f
), held AS MATERIALIZED (
    SELECT h.holder, pg_catalog.count(*) AS n, pg_catalog.count(*) FILTER (WHERE h.crash_group > 0) AS crashed
      FROM {schema}.follow h
     WHERE h.shard + 0 = :shard AND (:workspace = '' OR h.workspace = :workspace) AND h.holder IS NOT NULL AND NOT h.quiet AND h.holder IN (SELECT cur.holder FROM cur)
     GROUP BY h.holder
)
INSERT INTO {schema}.follow AS f
    (shard, workspace, reaction, stream, watermark, due, due_at, rank, error, epoch, deaths, crash_group, lost, generation, updated_at)
SELECT cur.shard, cur.workspace, cur.reaction, cur.stream, CASE WHEN cur.reset_requested THEN -1 ELSE cur.watermark END, cur.due,
       {now} + cur.pause, {now} + cur.pause - (cur.due_at - cur.rank),
       CASE WHEN cur.reset_requested THEN NULL WHEN cur.quiet THEN 'handed out to ' || cur.holder || ', but no response arrived'
            ELSE 'the lease of holder ' || cur.holder || ' expired' END, cur.epoch + 1,
       CASE WHEN cur.reset_requested THEN 0 WHEN cur.quiet THEN cur.deaths
            WHEN cur.crash_group = 1 OR cur.crash_group = 0 AND coalesce(held.n, 1) = 1 THEN cur.deaths + 1 ELSE cur.deaths END,
       CASE WHEN cur.reset_requested THEN 0 WHEN cur.quiet THEN cur.crash_group
            WHEN cur.crash_group = 0 THEN greatest(held.n - held.crashed, 1)
            ELSE (greatest(least(cur.crash_group, held.crashed), 1) + 1) / 2 END,
       CASE WHEN cur.quiet AND NOT cur.reset_requested THEN cur.lost + 1 ELSE 0 END,
       cur.generation + CASE WHEN cur.reset_requested THEN 1 ELSE 0 END, {now}
  FROM cur LEFT JOIN held ON held.holder = cur.holder
 WHERE cur.epoch = cur.wanted AND cur.until <= {now}
ON CONFLICT (shard, workspace, reaction, stream) DO UPDATE
   SET epoch = excluded.epoch, deaths = excluded.deaths, crash_group = excluded.crash_group, quiet = false, lost = excluded.lost, error = excluded.error, holder = NULL, until = NULL,
       watermark = excluded.watermark, generation = excluded.generation, reset_requested = false,
       failures = CASE WHEN f.reset_requested THEN 0 ELSE f.failures END, failing = CASE WHEN NOT f.reset_requested THEN f.failing END,
       due_at = excluded.due_at, rank = excluded.rank, updated_at = excluded.updated_at
 WHERE f.epoch = excluded.epoch - 1
RETURNING f.reaction
