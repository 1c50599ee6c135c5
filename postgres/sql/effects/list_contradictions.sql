-- Lists unacknowledged late calls, with what the journal has about their effects: of a number of operations after a given one, or of one operation.
-- :operation ('' for all)
WITH picked AS (
    SELECT DISTINCT l.operation FROM {schema}.late_call l
     WHERE l.shard = :shard AND l.workspace = :workspace AND l.seen_at IS NULL AND l.operation > :after
       AND (:operation = '' OR l.operation = :operation)
     ORDER BY l.operation LIMIT :limit
)
SELECT l.id::text, l.operation, l.subject, l.name, l.ordinal, l.epoch, l.state, l.result::text, l.node, l.at,
       coalesce(x.state, ''), coalesce(x.result::text, ''), coalesce(x.epoch, 0), coalesce(x.policy, '')
  FROM picked
 CROSS JOIN LATERAL (
       SELECT l.* FROM {schema}.late_call l
        WHERE l.shard = :shard AND l.workspace = :workspace AND l.operation = picked.operation AND l.seen_at IS NULL
       OFFSET 0) AS l
  LEFT JOIN LATERAL (
       SELECT x.* FROM {schema}.effect x
        WHERE x.shard = l.shard AND x.workspace = l.workspace AND x.operation = l.operation AND x.name = l.name AND x.ordinal = l.ordinal
        LIMIT 1) AS x ON true
 ORDER BY l.operation, l.at, l.id
