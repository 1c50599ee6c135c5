-- Deletes a run past its retention, with everything that belongs to it except its history, which has its own retention.
-- do
DELETE {include runs/by_id} AND r.prune_at <= {now}
RETURNING 1
-- also
DELETE FROM holdfast_effect AS x
 WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation >= :run || '/' AND x.operation < :run || '0'
-- also
DELETE FROM holdfast_step AS s WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run
-- also
DELETE FROM holdfast_signal AS g WHERE g.shard = :shard AND g.workspace = :workspace AND g.run = :run
-- also
DELETE FROM holdfast_approval AS a WHERE a.shard = :shard AND a.workspace = :workspace AND a.run = :run
-- else
SELECT 1
