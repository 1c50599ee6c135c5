-- Frees holds that have run out, and counts the deaths of their holders. Their
-- epochs end with them: a holder that comes back can end nothing more. Of a hold that was
-- quiet it counts a lost hand-out instead, and the stream waits the longer.
-- A list of unknown length meets a table of unknown size here, so nothing is joined:
-- each row is looked up by its key, and changed by way of its conflict.
-- $1 shard, $2 workspace, not looked at, $3 a JSON list of {w: workspace,
-- r: reaction, s: stream, e: epoch}
WITH a AS MATERIALIZED (
    SELECT q.item ->> 'w' AS workspace, q.item ->> 'r' AS reaction, q.item ->> 's' AS stream, (q.item ->> 'e')::bigint AS epoch
      FROM jsonb_array_elements($3::text::jsonb) AS q(item)
     WHERE $2::text IS NOT NULL
     ORDER BY (q.item ->> 'w') COLLATE "C", (q.item ->> 'r') COLLATE "C", (q.item ->> 's') COLLATE "C"
), cur AS MATERIALIZED (
    SELECT f.shard, f.workspace, f.reaction, f.stream, f.watermark, f.due, f.due_at, f.rank, f.deaths, f.quiet, f.lost, f.holder, f.epoch, f.until, a.epoch AS wanted,
           CASE WHEN f.quiet THEN least((1000::bigint << least(f.lost, 9)::integer) - 1000, 300000) ELSE 0 END * interval '1 ms' AS pause
      FROM a
     CROSS JOIN LATERAL (
           SELECT x.shard, x.workspace, x.reaction, x.stream, x.watermark, x.due, x.due_at, x.rank, x.deaths, x.quiet, x.lost, x.holder, x.epoch, x.until
             FROM {schema}.follow x
            WHERE x.shard = $1::smallint AND x.workspace = a.workspace AND x.reaction = a.reaction AND x.stream = a.stream
            LIMIT 1
              FOR UPDATE SKIP LOCKED) AS f
)
INSERT INTO {schema}.follow AS f
    (shard, workspace, reaction, stream, watermark, due, due_at, rank, error, epoch, deaths, lost, updated_at)
SELECT cur.shard, cur.workspace, cur.reaction, cur.stream, cur.watermark, cur.due, {now} + cur.pause, {now} + cur.pause - (cur.due_at - cur.rank),
       CASE WHEN cur.quiet THEN 'it was handed out to ' || cur.holder || ', who was not heard of' ELSE 'the holder ' || cur.holder || ' did not come back' END,
       cur.epoch + 1, cur.deaths + CASE WHEN cur.quiet THEN 0 ELSE 1 END, CASE WHEN cur.quiet THEN cur.lost + 1 ELSE 0 END, {now}
  FROM cur
 WHERE cur.epoch = cur.wanted AND cur.until <= {now}
ON CONFLICT (shard, workspace, reaction, stream) DO UPDATE
   SET epoch = excluded.epoch, deaths = excluded.deaths, quiet = false, lost = excluded.lost, error = excluded.error, holder = NULL, until = NULL,
       due_at = excluded.due_at, rank = excluded.rank, updated_at = excluded.updated_at
 WHERE f.epoch = excluded.epoch - 1
RETURNING f.reaction
