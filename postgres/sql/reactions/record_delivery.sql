-- Records up to which version events are delivered under new leases, before any of them is
-- delivered. Returns the recorded ones: the other leases were lost. Waits for its rows, in
-- the order of their keys.
-- A list of unknown length meets a table of unknown size here, so nothing is joined: each
-- row is looked up by its key, and changed through ON CONFLICT.
-- :items a JSON list of {w: workspace, r: reaction, s: stream, e: epoch, v: the last version that is delivered}
WITH a AS MATERIALIZED (
    SELECT q.item ->> 'w'::text AS workspace, q.item ->> 'r'::text AS reaction, q.item ->> 's'::text AS stream, (q.item ->> 'e'::text)::bigint AS epoch,
           (q.item ->> 'v'::text)::bigint AS delivered
      FROM pg_catalog.jsonb_array_elements(:items::jsonb) AS q(item)
     WHERE :workspace IS NOT NULL
     ORDER BY (q.item ->> 'w'::text) COLLATE "C", (q.item ->> 'r'::text) COLLATE "C", (q.item ->> 's'::text) COLLATE "C"
), cur AS MATERIALIZED (
    SELECT f.shard, f.workspace, f.reaction, f.stream, f.watermark, f.due, f.due_at, f.rank, f.epoch, f.until, f.updated_at,
           a.epoch AS wanted, a.delivered
      FROM a
     CROSS JOIN LATERAL (
           SELECT x.shard, x.workspace, x.reaction, x.stream, x.watermark, x.due, x.due_at, x.rank, x.epoch, x.until, x.updated_at
             FROM {schema}.follow x
            WHERE x.shard = :shard AND x.workspace = a.workspace AND x.reaction = a.reaction AND x.stream = a.stream
            LIMIT 1
              FOR UPDATE) AS f
)
INSERT INTO {schema}.follow AS f
    (shard, workspace, reaction, stream, watermark, due, due_at, rank, epoch, updated_at, delivered)
SELECT cur.shard, cur.workspace, cur.reaction, cur.stream, cur.watermark, cur.due, cur.due_at, cur.rank, cur.epoch, cur.updated_at, cur.delivered
  FROM cur
 WHERE cur.epoch = cur.wanted AND cur.until > {now}
ON CONFLICT (shard, workspace, reaction, stream) DO UPDATE
   SET delivered = excluded.delivered, delivered_epoch = excluded.epoch
 WHERE f.epoch = excluded.epoch
RETURNING f.workspace, f.reaction, f.stream, f.epoch
