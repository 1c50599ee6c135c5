-- Extends holds that have not run out, and answers those that it extended, and
-- those that somebody else has locked at this moment and that are held still: one
-- row must not cost a node all its holds.
-- $1 shard, $2 workspace, not looked at, $3 a JSON list of {w: workspace,
-- r: reaction, s: stream, e: epoch, l: lease in ms}
WITH a AS (
    SELECT q.item ->> 'w' AS workspace, q.item ->> 'r' AS reaction, q.item ->> 's' AS stream,
           (q.item ->> 'e')::bigint AS epoch, (q.item ->> 'l')::bigint AS lease
      FROM jsonb_array_elements($3::text::jsonb) AS q(item)
     WHERE $2::text IS NOT NULL
), cur AS MATERIALIZED (
    SELECT f.shard, f.workspace, f.reaction, f.stream, f.epoch, f.until, a.epoch AS wanted, a.lease
      FROM a JOIN {schema}.follow f
        ON f.shard = $1::smallint AND f.workspace = a.workspace AND f.reaction = a.reaction AND f.stream = a.stream
     ORDER BY f.shard, f.workspace, f.reaction, f.stream
       FOR UPDATE OF f SKIP LOCKED
), moved AS (
UPDATE {schema}.follow f
   SET until = {now} + cur.lease * interval '1 ms'
  FROM cur
 WHERE f.shard = cur.shard AND f.workspace = cur.workspace AND f.reaction = cur.reaction AND f.stream = cur.stream
   AND cur.epoch = cur.wanted AND cur.until > {now}
   AND f.epoch = cur.wanted
RETURNING f.workspace, f.reaction, f.stream, f.epoch, f.until
)
SELECT moved.workspace, moved.reaction, moved.stream, moved.epoch, moved.until FROM moved
UNION ALL
SELECT f.workspace, f.reaction, f.stream, f.epoch, f.until
  FROM a JOIN {schema}.follow f ON f.shard = $1::smallint AND f.workspace = a.workspace AND f.reaction = a.reaction AND f.stream = a.stream
 WHERE f.epoch = a.epoch AND f.until > {now}
   AND NOT EXISTS (SELECT 1 FROM cur WHERE cur.workspace = a.workspace AND cur.reaction = a.reaction AND cur.stream = a.stream)
