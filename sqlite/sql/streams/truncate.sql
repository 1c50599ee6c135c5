-- Removes the events of a stream below a version, unless the stream is being closed.
UPDATE holdfast_stream AS s
   SET first = :first
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
   AND s.first < :first AND s.head >= :first
   AND (s.state <> 'closing' OR s.until <= {now})
RETURNING first
