-- Deletes a run whose time is over, with all that belongs to it but its history, which goes
-- by its own rule.
-- ?1 shard, ?2 workspace, ?3 command, ?4 run
-- do
DELETE FROM holdfast_run AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?4 AND r.prune_at <= {now}
RETURNING 1
-- also
DELETE FROM holdfast_effect AS x
 WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation >= ?4 || '/' AND x.operation < ?4 || '0'
-- also
DELETE FROM holdfast_step AS s WHERE s.shard = ?1 AND s.workspace = ?2 AND s.run = ?4
-- also
DELETE FROM holdfast_signal AS g WHERE g.shard = ?1 AND g.workspace = ?2 AND g.run = ?4
-- also
DELETE FROM holdfast_approval AS a WHERE a.shard = ?1 AND a.workspace = ?2 AND a.run = ?4
-- else
SELECT 1
