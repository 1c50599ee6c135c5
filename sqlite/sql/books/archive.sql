-- Closes a stream and keeps its events: under the epoch of whoever is closing it or, without one, as it is open, which adds one to the epoch.
UPDATE holdfast_stream AS s
   SET state = 'closed', closed = 'archive', holder = NULL, until = NULL, epoch = coalesce(:epoch, s.epoch + 1)
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
   AND CASE WHEN :epoch IS NULL THEN s.state = 'open' OR (s.state = 'closing' AND s.until <= {now})
            ELSE s.state = 'closing' AND s.epoch = :epoch AND s.until > {now} END
RETURNING epoch
