-- Extends the hold of whoever closes a stream, if it has not run out.
-- ?1 shard, ?2 workspace, ?3 stream, ?4 epoch, ?5 lease in ms
-- do
UPDATE holdfast_stream AS s
   SET until = {now} + ?5
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?3
   AND s.state = 'closing' AND s.epoch = ?4 AND s.until > {now}
RETURNING until
