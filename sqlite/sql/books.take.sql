-- Takes a stream to close it: nobody is closing it, or whoever was has lost his
-- hold. Taking adds one to the epoch.
-- ?1 shard, ?2 workspace, ?3 stream, ?4 holder, ?5 lease in ms
-- do
UPDATE holdfast_stream AS s
   SET state = 'closing', holder = ?4, epoch = s.epoch + 1, until = {now} + ?5
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?3
   AND (s.state = 'open' OR (s.state = 'closing' AND s.until <= {now}))
RETURNING epoch, until
