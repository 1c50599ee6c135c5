-- Takes a stream to close it: nobody is closing it, or whoever was has lost his hold.
UPDATE holdfast_stream AS s
   SET state = 'closing', holder = :holder, epoch = s.epoch + 1, until = {now} + :lease
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
   AND (s.state = 'open' OR (s.state = 'closing' AND s.until <= {now}))
RETURNING epoch, until
