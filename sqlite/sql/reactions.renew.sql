-- Extends holds that have not run out, and answers those that it extended.
-- One whose reset is requested is not extended, and says so.
-- ?1 shard, ?2 workspace, not looked at, ?3 a JSON list of {w: workspace,
-- r: reaction, s: stream, e: epoch, l: lease in ms, t: the longest since it was taken, in ms, 0 for none}
-- do
WITH q AS MATERIALIZED (
    SELECT j.value ->> 'w' AS workspace, j.value ->> 'r' AS reaction, j.value ->> 's' AS stream, j.value ->> 'e' AS epoch,
           j.value ->> 'l' AS lease, coalesce(j.value ->> 't', 0) AS longest, {now} AS now
      FROM json_each(?3) AS j
     WHERE ?2 IS NOT NULL
)
UPDATE holdfast_follow AS f
   SET until = CASE WHEN f.reset_requested THEN f.until WHEN q.longest = 0 THEN q.now + q.lease ELSE min(q.now + q.lease, f.updated_at + q.longest) END, quiet = 0, lost = 0
  FROM q
 WHERE f.shard = ?1 AND f.workspace = q.workspace AND f.reaction = q.reaction AND f.stream = q.stream
   AND f.epoch = q.epoch AND f.until > q.now AND (q.longest = 0 OR q.now < f.updated_at + q.longest)
RETURNING workspace, reaction, stream, epoch, until, reset_requested
