-- Extends the hold of whoever closes a stream, if it has not run out.
UPDATE holdfast_stream AS s
   SET until = {now} + :lease
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
   AND s.state = 'closing' AND s.epoch = :epoch AND s.until > {now}
RETURNING until
