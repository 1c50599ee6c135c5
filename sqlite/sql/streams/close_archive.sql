-- Closes a stream and retains its events: under the epoch of the closer or, without one, while the stream is open, which increments the epoch.
UPDATE holdfast_stream AS s
   SET state = 'closed', closed = 'archive', holder = NULL, until = NULL, epoch = coalesce(:epoch, s.epoch + 1)
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
   AND CASE WHEN :epoch IS NULL THEN s.state = 'open' OR (s.state = 'closing' AND s.until <= {now})
            ELSE s.state = 'closing' AND s.epoch = :epoch AND s.until > {now} END
RETURNING epoch
