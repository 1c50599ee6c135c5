-- Closes a stream and keeps its events: under the epoch of whoever is closing it
-- or, without one, as it is open, which adds one to the epoch.
-- ?1 shard, ?2 workspace, ?3 stream, ?4 epoch (NULL none)
-- do
UPDATE holdfast_stream AS s
   SET state = 'closed', closed = 'archive', holder = NULL, until = NULL, epoch = coalesce(?4, s.epoch + 1)
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?3
   AND CASE WHEN ?4 IS NULL THEN s.state = 'open' OR (s.state = 'closing' AND s.until <= {now})
            ELSE s.state = 'closing' AND s.epoch = ?4 AND s.until > {now} END
RETURNING epoch
