-- Renews a lease that has not expired, limited to a maximum time since it was taken.
UPDATE holdfast_entity AS e
   SET until = CASE WHEN :longest = 0 THEN {now} + :lease ELSE min({now} + :lease, e.due_at + :longest) END, quiet = e.quiet AND :heard = 0, lost = CASE WHEN :heard = 0 THEN e.lost ELSE 0 END
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle AND e.id = :entity
   AND e.operation = :operation AND e.epoch = :epoch AND e.until > {now} AND (:longest = 0 OR {now} < e.due_at + :longest)
RETURNING until
