-- Lists unacknowledged late calls, with what the journal has about their effects: of a number of operations after a given one, or of one operation.
SELECT l.id, l.operation, l.subject, l.name, l.ordinal, l.epoch, l.state, l.result, l.node, l.at, coalesce(x.state, ''), coalesce(x.result, ''), coalesce(x.epoch, 0), coalesce(x.policy, '')
  FROM holdfast_late_call AS l
  LEFT JOIN holdfast_effect AS x ON x.shard = l.shard AND x.workspace = l.workspace AND x.operation = l.operation AND x.name = l.name AND x.ordinal = l.ordinal
 WHERE l.shard = :shard AND l.workspace = :workspace AND l.seen_at IS NULL
   AND l.operation IN (SELECT DISTINCT o.operation FROM holdfast_late_call AS o
                        WHERE o.shard = :shard AND o.workspace = :workspace AND o.seen_at IS NULL AND o.operation > :after AND (:operation = '' OR o.operation = :operation)
                        ORDER BY o.operation LIMIT :limit)
 ORDER BY l.operation, l.at, l.id
