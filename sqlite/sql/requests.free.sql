-- Forgets a request, if it is held under this epoch and the hold has not run out.
-- ?1 shard, ?2 workspace, ?3 command, ?4 key, ?5 epoch
-- do
DELETE FROM holdfast_request AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.key = ?4
   AND r.epoch = ?5 AND r.state = 'held' AND r.until > {now}
RETURNING 0
-- else
SELECT 0
