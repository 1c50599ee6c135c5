-- Deletes a run past its retention, with everything that belongs to it except its history, which has its own retention.
-- A key is kept: its row stays, with another id and without data, so that no second run can be started with it.
-- :expired the id that a kept row gets; :keep how long it is kept, in ms, 0 for ever
-- do
UPDATE holdfast_run AS r
   SET id = CASE WHEN r.key IS NOT NULL THEN :expired ELSE r.id END,
       status = 'COMPLETED', input = 'null', state = 'null', memo = 'null', output = NULL, error = NULL, step = '', visit = 1,
       prune_at = CASE WHEN :keep > 0 THEN {now} + :keep END, updated_at = {now}
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run AND r.prune_at <= {now}
RETURNING 1
-- also
DELETE {include runs/by_id} AND (:run = :expired OR r.key IS NULL)
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
