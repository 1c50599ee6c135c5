-- Deletes a request, if it is leased under this epoch and the lease has not expired.
-- do
DELETE FROM holdfast_request AS r
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.key = :key
   AND r.epoch = :epoch AND r.state = 'held' AND r.until > {now}
RETURNING 0
-- else
SELECT 0
