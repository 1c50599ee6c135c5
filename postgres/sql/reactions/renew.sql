-- Renews leases that have not expired. Returns the renewed ones, and those whose rows another
-- transaction has locked and that are still valid: one locked row must not cost a node all its
-- leases. A lease with a requested reset is not renewed, and is returned as such.
-- A list of unknown length meets a table of unknown size here, so nothing is joined: each
-- row is looked up by its key, and changed through ON CONFLICT.
-- :items a JSON list of {w: workspace, r: reaction, s: stream, e: epoch, l: lease in ms, t: the maximum since it was taken, in ms, 0 for
-- none}
WITH a AS MATERIALIZED (
    SELECT q.nth, q.item ->> 'w'::text AS workspace, q.item ->> 'r'::text AS reaction, q.item ->> 's'::text AS stream,
           (q.item ->> 'e'::text)::bigint AS epoch, (q.item ->> 'l'::text)::bigint AS lease,
           coalesce((q.item ->> 't'::text)::bigint, 0) AS longest
      FROM pg_catalog.jsonb_array_elements(:items::jsonb) WITH ORDINALITY AS q(item, nth)
     WHERE :workspace IS NOT NULL
     ORDER BY (q.item ->> 'w'::text) COLLATE "C", (q.item ->> 'r'::text) COLLATE "C", (q.item ->> 's'::text) COLLATE "C"
), cur AS MATERIALIZED (
    SELECT a.nth, f.shard, f.workspace, f.reaction, f.stream, f.watermark, f.due, f.due_at, f.rank, f.holder, f.epoch, f.until, f.updated_at, f.reset_requested,
           a.epoch AS wanted, a.lease, a.longest
      FROM a
     CROSS JOIN LATERAL (
           SELECT x.shard, x.workspace, x.reaction, x.stream, x.watermark, x.due, x.due_at, x.rank, x.holder, x.epoch, x.until, x.updated_at, x.reset_requested
             FROM {schema}.follow x
            WHERE x.shard = :shard AND x.workspace = a.workspace AND x.reaction = a.reaction AND x.stream = a.stream
            LIMIT 1
              FOR UPDATE SKIP LOCKED) AS f
), moved AS (
    INSERT INTO {schema}.follow AS f
        (shard, workspace, reaction, stream, watermark, due, due_at, rank, holder, epoch, until, updated_at)
    SELECT cur.shard, cur.workspace, cur.reaction, cur.stream, cur.watermark, cur.due, cur.due_at, cur.rank, cur.holder, cur.epoch,
           CASE WHEN cur.reset_requested THEN cur.until WHEN cur.longest = 0 THEN {now} + cur.lease::float8 * interval '1 ms'
                ELSE least({now} + cur.lease::float8 * interval '1 ms', cur.updated_at + cur.longest::float8 * interval '1 ms') END, cur.updated_at
      FROM cur
     WHERE cur.epoch = cur.wanted AND cur.until > {now}
       AND (cur.longest = 0 OR {now} < cur.updated_at + cur.longest::float8 * interval '1 ms')
    ON CONFLICT (shard, workspace, reaction, stream) DO UPDATE
       SET until = excluded.until, quiet = false, lost = 0
     WHERE f.epoch = excluded.epoch
    RETURNING f.workspace, f.reaction, f.stream, f.epoch, f.until, f.reset_requested
)
SELECT moved.workspace, moved.reaction, moved.stream, moved.epoch, moved.until, moved.reset_requested FROM moved
UNION ALL
SELECT a.workspace, a.reaction, a.stream, a.epoch, f.until, f.reset_requested
  FROM a
 CROSS JOIN LATERAL (SELECT x.epoch, x.until, x.reset_requested FROM {schema}.follow x
                      WHERE x.shard = :shard AND x.workspace = a.workspace AND x.reaction = a.reaction AND x.stream = a.stream
                      LIMIT 1) AS f
 WHERE f.epoch = a.epoch AND f.until > {now} AND a.nth NOT IN (SELECT cur.nth FROM cur)
