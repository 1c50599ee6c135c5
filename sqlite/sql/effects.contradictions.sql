-- Late calls that nobody has acknowledged, with what the journal has of their effects: of up to so many operations behind one, or of one operation.
-- ?1 shard, ?2 workspace, ?3 operation ('' for all), ?4 behind which, ?5 how many operations
-- do
SELECT l.id, l.operation, l.subject, l.name, l.ordinal, l.epoch, l.state, l.result, l.node, l.at, coalesce(x.state, ''), coalesce(x.result, ''), coalesce(x.epoch, 0), coalesce(x.policy, '')
  FROM holdfast_late_call AS l
  LEFT JOIN holdfast_effect AS x ON x.shard = l.shard AND x.workspace = l.workspace AND x.operation = l.operation AND x.name = l.name AND x.ordinal = l.ordinal
 WHERE l.shard = ?1 AND l.workspace = ?2 AND l.seen_at IS NULL
   AND l.operation IN (SELECT DISTINCT o.operation FROM holdfast_late_call AS o
                        WHERE o.shard = ?1 AND o.workspace = ?2 AND o.seen_at IS NULL AND o.operation > ?4 AND (?3 = '' OR o.operation = ?3)
                        ORDER BY o.operation LIMIT +?5)
 ORDER BY l.operation, l.at, l.id
