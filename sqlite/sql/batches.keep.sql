-- Extends the hold on an item that is cleaned up after.
-- ?1 shard, ?2 workspace, ?3 batch, ?4 key, ?5 sweeps, ?6 lease in ms
-- do
UPDATE holdfast_item AS i
   SET sweep_at = {now} + ?6
 WHERE i.shard = ?1 AND i.workspace = ?2 AND i.batch = ?3 AND i.key = ?4 AND i.sweeps = ?5 AND i.sweep_at > {now}
RETURNING sweep_at
