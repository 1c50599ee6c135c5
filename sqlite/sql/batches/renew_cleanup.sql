-- Renews the lease on an item that is being cleaned up. A cleanup that was recorded has none.
-- :dirty whether the item was not cleaned up yet when the cleanup was taken
UPDATE holdfast_item AS i
   SET sweep_at = {now} + :lease
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = :key AND i.sweeps = :sweeps AND i.dirty = :dirty AND i.sweep_at > {now}
RETURNING sweep_at
