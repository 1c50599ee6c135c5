-- Deletes runs whose time is over, with all that belongs to them but their history, which
-- goes by its own rule.
-- ?1 shard, ?2 workspace, ?3 command, ?4 limit
-- look
SELECT 1 FROM holdfast_run AS r INDEXED BY holdfast_run_prune WHERE r.shard = ?1 AND r.prune_at IS NOT NULL AND r.prune_at <= {now} LIMIT 1
-- do
UPDATE holdfast_run AS r
   SET prune_at = -1
 WHERE (r.shard, r.workspace, r.id) IN (
       SELECT x.shard, x.workspace, x.id FROM holdfast_run AS x INDEXED BY holdfast_run_prune
        WHERE x.shard = ?1 AND x.prune_at IS NOT NULL AND x.prune_at <= {now}
        ORDER BY x.prune_at
        LIMIT ?4)
-- also
DELETE FROM holdfast_effect AS e
 WHERE (e.shard, e.workspace, e.operation) IN (
       SELECT s.shard, s.workspace, s.run || '/' || s.name || '/' || s.visit
         FROM holdfast_run AS r INDEXED BY holdfast_run_prune JOIN holdfast_step AS s ON s.shard = r.shard AND s.workspace = r.workspace AND s.run = r.id
        WHERE r.shard = ?1 AND r.prune_at IS NOT NULL AND r.prune_at = -1)
-- also
DELETE FROM holdfast_step AS s
 WHERE (s.shard, s.workspace, s.run) IN (
       SELECT r.shard, r.workspace, r.id FROM holdfast_run AS r INDEXED BY holdfast_run_prune WHERE r.shard = ?1 AND r.prune_at IS NOT NULL AND r.prune_at = -1)
-- also
DELETE FROM holdfast_signal AS g
 WHERE (g.shard, g.workspace, g.run) IN (
       SELECT r.shard, r.workspace, r.id FROM holdfast_run AS r INDEXED BY holdfast_run_prune WHERE r.shard = ?1 AND r.prune_at IS NOT NULL AND r.prune_at = -1)
-- also
DELETE FROM holdfast_approval AS a
 WHERE (a.shard, a.workspace, a.run) IN (
       SELECT r.shard, r.workspace, r.id FROM holdfast_run AS r INDEXED BY holdfast_run_prune WHERE r.shard = ?1 AND r.prune_at IS NOT NULL AND r.prune_at = -1)
-- then
SELECT count(*) FROM holdfast_run AS r INDEXED BY holdfast_run_prune WHERE r.shard = ?1 AND r.prune_at IS NOT NULL AND r.prune_at = -1
-- also
DELETE FROM holdfast_run AS r WHERE r.shard = ?1 AND r.prune_at IS NOT NULL AND r.prune_at = -1
-- else
SELECT 0
