-- Opens a stream again that was being closed: by its closer, as long as the hold
-- lasts, or by a sweep when it has run out.
-- ?1 shard, ?2 workspace, ?3 stream, ?4 epoch, ?5 1 for a sweep
-- do
UPDATE holdfast_stream AS s
   SET state = 'open', holder = NULL, until = NULL
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?3
   AND s.state = 'closing' AND s.epoch = ?4 AND (s.until <= {now}) = (?5 = 1)
RETURNING epoch
