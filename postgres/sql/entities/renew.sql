-- Renews a lease that has not expired, limited to a maximum time since it was taken. The row is locked first: a statement that
-- waited for it must read the time afterwards.
-- :longest the maximum in ms, 0 for none; :heard whether the renewal counts as a report of the holder
WITH cur AS (
    SELECT e.shard, e.workspace, e.lifecycle, e.id, e.operation, e.epoch, e.until, e.due_at
      FROM {schema}.entity e
     WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
       FOR UPDATE
)
UPDATE {schema}.entity e
   SET until = CASE WHEN :longest = 0 THEN {now} + :lease::float8 * interval '1 ms'
                    ELSE least({now} + :lease::float8 * interval '1 ms', cur.due_at + :longest::float8 * interval '1 ms') END,
       quiet = e.quiet AND :heard = 0, lost = CASE WHEN :heard = 0 THEN e.lost ELSE 0 END
  FROM cur
 WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
   AND cur.operation = :operation AND cur.epoch = :epoch AND cur.until > {now} AND (:longest = 0 OR {now} < cur.due_at + :longest::float8 * interval '1 ms')
   AND e.epoch = :epoch
RETURNING e.until
