-- Frees holds that have run out, and counts the deaths of their holders. Their
-- epochs end with them: a holder that comes back can end nothing more.
-- ?1 shard, ?2 workspace, not looked at, ?3 a JSON list of {w: workspace,
-- r: reaction, s: stream, e: epoch}
-- do
WITH q AS MATERIALIZED (
    SELECT j.value ->> 'w' AS workspace, j.value ->> 'r' AS reaction, j.value ->> 's' AS stream, j.value ->> 'e' AS epoch, {now} AS now
      FROM json_each(?3) AS j
     WHERE ?2 IS NOT NULL
)
UPDATE holdfast_follow AS f
   SET epoch = f.epoch + 1, deaths = f.deaths + 1, error = 'the holder ' || f.holder || ' did not come back', holder = NULL, until = NULL,
       due_at = q.now, rank = q.now - (f.due_at - f.rank), updated_at = q.now
  FROM q
 WHERE f.shard = ?1 AND f.workspace = q.workspace AND f.reaction = q.reaction AND f.stream = q.stream
   AND f.epoch = q.epoch AND f.until <= q.now
RETURNING reaction
