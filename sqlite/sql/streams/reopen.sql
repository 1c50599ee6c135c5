-- Reopens a stream that was being closed: by its closer while the lease lasts, or by a sweep after the lease has expired.
UPDATE holdfast_stream AS s
   SET state = 'open', holder = NULL, until = NULL
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
   AND s.state = 'closing' AND s.epoch = :epoch AND (s.until <= {now}) = (:sweep = 1)
RETURNING epoch
