-- Extends a hold that has not run out, at the most until so long after it was taken.
-- ?1 shard, ?2 workspace, ?3 lifecycle, ?4 entity, ?5 operation, ?6 epoch, ?7 lease in ms, ?8 the longest in ms, 0 for none,
-- ?9 whether it is for its holder, who was heard of by that
-- do
UPDATE holdfast_entity AS e
   SET until = CASE WHEN ?8 = 0 THEN {now} + ?7 ELSE min({now} + ?7, e.due_at + ?8) END, quiet = e.quiet AND ?9 = 0, lost = CASE WHEN ?9 = 0 THEN e.lost ELSE 0 END
 WHERE e.shard = ?1 AND e.workspace = ?2 AND e.lifecycle = ?3 AND e.id = ?4
   AND e.operation = ?5 AND e.epoch = ?6 AND e.until > {now} AND (?8 = 0 OR {now} < e.due_at + ?8)
RETURNING until
