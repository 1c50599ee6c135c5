-- Renews the lease on an item that is being cleaned up. A cleanup that was recorded has none.
-- :dirty whether the item was not cleaned up yet when the cleanup was taken
UPDATE {schema}.item i
   SET sweep_at = {now} + :lease::float8 * interval '1 ms'
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = :key
   AND i.sweeps = :sweeps AND i.dirty = (:dirty = 1) AND coalesce(i.sweep_at, '-infinity') > {now} -- coalesce makes the planner use the key, not the index of items to sweep
RETURNING i.sweep_at
