-- Acknowledges contradictions of an operation, if all of them belong to it. The first acknowledgement of each one is stored.
UPDATE holdfast_late_call AS l
   SET seen_at = coalesce(l.seen_at, {now}), seen_by = coalesce(l.seen_by, :by)
 WHERE l.shard = :shard AND l.workspace = :workspace AND l.operation = :operation
   AND l.id IN (SELECT q.value FROM json_each(:ids) AS q)
   AND (SELECT count(*) FROM json_each(:ids)) = (SELECT count(*) FROM holdfast_late_call AS c
                                                WHERE c.shard = :shard AND c.workspace = :workspace AND c.operation = :operation AND c.id IN (SELECT q.value FROM json_each(:ids) AS q))
RETURNING 1
