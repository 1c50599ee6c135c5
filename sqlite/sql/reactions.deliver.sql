-- Notes up to which version events are delivered under leases that have just been
-- taken, before anybody is told of them. Answers those that are noted: the others were lost.
-- ?1 shard, ?2 workspace, not looked at, ?3 a JSON list of {w: workspace,
-- r: reaction, s: stream, e: epoch, v: the last version that is delivered}
-- do
WITH q AS MATERIALIZED (
    SELECT j.value ->> 'w' AS workspace, j.value ->> 'r' AS reaction, j.value ->> 's' AS stream, j.value ->> 'e' AS epoch,
           j.value ->> 'v' AS delivered, {now} AS now
      FROM json_each(?3) AS j
     WHERE ?2 IS NOT NULL
)
UPDATE holdfast_follow AS f
   SET delivered = q.delivered, delivered_epoch = f.epoch
  FROM q
 WHERE f.shard = ?1 AND f.workspace = q.workspace AND f.reaction = q.reaction AND f.stream = q.stream
   AND f.epoch = q.epoch AND f.until > q.now
RETURNING workspace, reaction, stream, epoch
