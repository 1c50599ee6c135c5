-- Deletes the effects of operations that have ended, and whose last effect is older than their retention. Those of an operation that
-- is open, or of which a person has not seen a late call, stay; so do those of steps, whose ids are not below :upto: they
-- are deleted with their run. Ids of operations are ordered by time, so each workspace has a range of old ones. An operation that
-- has ended is never open again.
WITH RECURSIVE w AS (
    (SELECT e.workspace FROM {schema}.effect e WHERE e.shard = :shard AND (:workspace = '' OR e.workspace = :workspace) ORDER BY e.shard, e.workspace LIMIT 1)
    UNION ALL
    SELECT x.workspace
      FROM w CROSS JOIN LATERAL (
           SELECT e.workspace FROM {schema}.effect e
            WHERE e.shard = :shard AND (:workspace = '' OR e.workspace = :workspace) AND e.workspace > w.workspace
            ORDER BY e.shard, e.workspace
            LIMIT 1) AS x
), old AS MATERIALIZED (
    SELECT x.shard, x.workspace, x.operation, x.name, x.ordinal
      FROM w CROSS JOIN LATERAL (
           SELECT e.shard, e.workspace, e.operation, e.name, e.ordinal
             FROM {schema}.effect e
            WHERE e.shard = :shard AND e.workspace = w.workspace AND e.operation < :upto
              AND coalesce(e.ended_at, e.begun_at) < (SELECT {now} - :age::float8 * interval '1 ms')
              AND (SELECT true FROM {schema}.entity n
                    WHERE (n.shard + 0) = e.shard AND n.workspace = e.workspace AND n.operation = e.operation AND n.phase <> 'free' LIMIT 1) IS NULL
              AND (SELECT true FROM {schema}.late_call l
                    WHERE l.shard = e.shard AND l.workspace = e.workspace AND l.operation = e.operation AND l.seen_at IS NULL LIMIT 1) IS NULL
            ORDER BY e.shard, e.workspace, e.operation
            LIMIT :limit) AS x
     LIMIT :limit
)
DELETE FROM {schema}.effect e
 USING old
 WHERE e.shard = ANY (ARRAY[old.shard]) AND e.workspace = old.workspace AND e.operation = old.operation AND e.name = old.name AND e.ordinal = old.ordinal
RETURNING 1
