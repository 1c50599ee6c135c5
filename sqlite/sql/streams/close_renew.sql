-- Renews the lease of a stream's closer, if it has not expired.
UPDATE holdfast_stream AS s
   SET until = {now} + :lease
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
   AND s.state = 'closing' AND s.epoch = :epoch AND s.until > {now}
RETURNING until
