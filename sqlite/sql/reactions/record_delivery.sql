-- Records up to which version events are delivered under new leases, before any of them is delivered.
WITH q AS MATERIALIZED (
    SELECT j.value ->> 'w' AS workspace, j.value ->> 'r' AS reaction, j.value ->> 's' AS stream, j.value ->> 'e' AS epoch,
           j.value ->> 'v' AS delivered, {now} AS now
      FROM json_each(:items) AS j
     WHERE :workspace IS NOT NULL
)
UPDATE holdfast_follow AS f
   SET delivered = q.delivered, delivered_epoch = f.epoch
  FROM q
 WHERE f.shard = :shard AND f.workspace = q.workspace AND f.reaction = q.reaction AND f.stream = q.stream
   AND f.epoch = q.epoch AND f.until > q.now
RETURNING workspace, reaction, stream, epoch
