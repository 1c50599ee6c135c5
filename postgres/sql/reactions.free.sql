-- Frees holds that have run out, and counts the deaths of their holders. Their
-- epochs end with them: a holder that comes back can end nothing more.
-- $1 shard, $2 workspace, not looked at, $3 a JSON list of {w: workspace,
-- r: reaction, s: stream, e: epoch}
WITH a AS (
    SELECT q.item ->> 'w' AS workspace, q.item ->> 'r' AS reaction, q.item ->> 's' AS stream, (q.item ->> 'e')::bigint AS epoch
      FROM jsonb_array_elements($3::text::jsonb) AS q(item)
     WHERE $2::text IS NOT NULL
), cur AS MATERIALIZED (
    SELECT f.shard, f.workspace, f.reaction, f.stream, f.due_at, f.rank, f.deaths, f.holder, f.epoch, f.until, a.epoch AS wanted
      FROM a JOIN {schema}.follow f
        ON f.shard = $1::smallint AND f.workspace = a.workspace AND f.reaction = a.reaction AND f.stream = a.stream
     ORDER BY f.shard, f.workspace, f.reaction, f.stream
       FOR UPDATE OF f SKIP LOCKED
)
UPDATE {schema}.follow f
   SET epoch = cur.epoch + 1, deaths = cur.deaths + 1, error = 'the holder ' || cur.holder || ' did not come back', holder = NULL, until = NULL,
       due_at = {now}, rank = {now} - (cur.due_at - cur.rank), updated_at = {now}
  FROM cur
 WHERE f.shard = cur.shard AND f.workspace = cur.workspace AND f.reaction = cur.reaction AND f.stream = cur.stream
   AND cur.epoch = cur.wanted AND cur.until <= {now}
   AND f.epoch = cur.wanted
RETURNING f.reaction
