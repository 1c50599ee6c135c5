-- Takes a stream to close it, if it has no closer or the closer's lease has expired.
UPDATE holdfast_stream AS s
   SET state = 'closing', holder = :holder, epoch = s.epoch + 1, until = {now} + :lease
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
   AND (s.state = 'open' OR (s.state = 'closing' AND s.until <= {now}))
RETURNING epoch, until
