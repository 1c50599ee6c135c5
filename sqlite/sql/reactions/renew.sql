-- Renews leases that have not expired, and returns the renewed ones. A lease with a
-- requested reset is not renewed, and is returned as such.
WITH q AS MATERIALIZED (
    SELECT j.value ->> 'w' AS workspace, j.value ->> 'r' AS reaction, j.value ->> 's' AS stream, j.value ->> 'e' AS epoch,
           j.value ->> 'l' AS lease, coalesce(j.value ->> 't', 0) AS longest, {now} AS now
      FROM json_each(:items) AS j
     WHERE :workspace IS NOT NULL
)
UPDATE holdfast_follow AS f
   SET until = CASE WHEN f.reset_requested THEN f.until WHEN q.longest = 0 THEN q.now + q.lease ELSE min(q.now + q.lease, f.updated_at + q.longest) END, quiet = 0, lost = 0
  FROM q
 WHERE f.shard = :shard AND f.workspace = q.workspace AND f.reaction = q.reaction AND f.stream = q.stream
   AND f.epoch = q.epoch AND f.until > q.now AND (q.longest = 0 OR q.now < f.updated_at + q.longest)
RETURNING workspace, reaction, stream, epoch, until, reset_requested
