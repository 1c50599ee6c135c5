-- Deletes the effects of operations that have ended, and whose last effect is older than their retention. Those of an operation that
-- is open, or of which a person has not seen a late call, stay; so do those of steps, whose ids are not below :upto: they
-- are deleted with their run. Ids of operations are ordered by time, so each workspace has a range of old ones.
DELETE FROM holdfast_effect AS x
 WHERE x.shard = :shard AND (:workspace = '' OR x.workspace = :workspace)
   AND (x.workspace, x.operation, x.name, x.ordinal) IN (
       WITH RECURSIVE w(workspace) AS (
            SELECT ''
             UNION ALL
            SELECT (SELECT e.workspace FROM holdfast_effect AS e
                     WHERE e.shard = :shard AND e.workspace > w.workspace
                     ORDER BY e.workspace
                     LIMIT 1)
              FROM w WHERE w.workspace IS NOT NULL)
       SELECT e.workspace, e.operation, e.name, e.ordinal
         FROM w CROSS JOIN holdfast_effect AS e
        WHERE e.shard = :shard AND e.workspace = w.workspace AND e.operation < :upto
          AND coalesce(e.ended_at, e.begun_at) < {now} - :age
          AND NOT EXISTS (SELECT 1 FROM holdfast_entity AS n
                           WHERE n.shard = e.shard AND n.workspace = e.workspace AND n.operation = e.operation AND n.phase <> 'free')
          AND NOT EXISTS (SELECT 1 FROM holdfast_late_call AS l
                           WHERE l.shard = e.shard AND l.workspace = e.workspace AND l.operation = e.operation AND l.seen_at IS NULL)
        LIMIT :limit)
RETURNING 1
