-- Opens a stream again that was being closed: by its closer, as long as the hold lasts, or by a sweep when it has run out.
UPDATE holdfast_stream AS s
   SET state = 'open', holder = NULL, until = NULL
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
   AND s.state = 'closing' AND s.epoch = :epoch AND (s.until <= {now}) = (:sweep = 1)
RETURNING epoch
