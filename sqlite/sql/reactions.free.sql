-- Frees holds that have run out, and counts the deaths of their holders. Their
-- epochs end with them: a holder that comes back can end nothing more. Of a hold that was
-- quiet it counts a lost hand-out instead, and the stream waits the longer.
-- ?1 shard, ?2 workspace, not looked at, ?3 a JSON list of {w: workspace,
-- r: reaction, s: stream, e: epoch}
-- do
WITH q AS MATERIALIZED (
    SELECT j.value ->> 'w' AS workspace, j.value ->> 'r' AS reaction, j.value ->> 's' AS stream, j.value ->> 'e' AS epoch, {now} AS now
      FROM json_each(?3) AS j
     WHERE ?2 IS NOT NULL
)
UPDATE holdfast_follow AS f
   SET epoch = f.epoch + 1, deaths = f.deaths + (NOT f.quiet), quiet = 0, lost = CASE WHEN f.quiet THEN f.lost + 1 ELSE 0 END,
       error = CASE WHEN f.quiet THEN 'it was handed out to ' || f.holder || ', who was not heard of' ELSE 'the holder ' || f.holder || ' did not come back' END,
       holder = NULL, until = NULL, updated_at = q.now,
       due_at = q.now + CASE WHEN f.quiet THEN min((1000 << min(f.lost, 9)) - 1000, 300000) ELSE 0 END,
       rank = q.now + CASE WHEN f.quiet THEN min((1000 << min(f.lost, 9)) - 1000, 300000) ELSE 0 END - (f.due_at - f.rank)
  FROM q
 WHERE f.shard = ?1 AND f.workspace = q.workspace AND f.reaction = q.reaction AND f.stream = q.stream
   AND f.epoch = q.epoch AND f.until <= q.now
RETURNING reaction
