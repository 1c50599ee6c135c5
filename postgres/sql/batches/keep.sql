-- Extends the hold on an item that is cleaned up after.
UPDATE {schema}.item i
   SET sweep_at = {now} + :lease::float8 * interval '1 ms'
 WHERE i.shard = :shard AND i.workspace = :workspace AND i.batch = :batch AND i.key = :key
   AND i.sweeps = :sweeps AND coalesce(i.sweep_at, '-infinity') > {now} -- coalesce: by its key, not by the index of what is to be swept
RETURNING i.sweep_at
