-- Records that a person has seen contradictions of an operation, if it has all of them: the first who
-- acknowledges one counts. Answers one row for each.
-- ?1 shard, ?2 workspace, ?3 operation, ?4 by, ?5 a JSON list of ids, each once
-- do
UPDATE holdfast_late_call AS l
   SET seen_at = coalesce(l.seen_at, {now}), seen_by = coalesce(l.seen_by, ?4)
 WHERE l.shard = ?1 AND l.workspace = ?2 AND l.operation = ?3
   AND l.id IN (SELECT q.value FROM json_each(?5) AS q)
   AND (SELECT count(*) FROM json_each(?5)) = (SELECT count(*) FROM holdfast_late_call AS c
                                                WHERE c.shard = ?1 AND c.workspace = ?2 AND c.operation = ?3 AND c.id IN (SELECT q.value FROM json_each(?5) AS q))
RETURNING 1
