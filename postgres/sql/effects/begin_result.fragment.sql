-- Returns the state of an effect that is about to be attempted; {1} is its operation.
SELECT m.member,
       CASE WHEN held.member IS NULL THEN 0
            WHEN counted.member IS NULL
                  AND (o.name IS NULL
                       OR o.state = 'notDone' AND NOT EXISTS (SELECT 1 FROM {schema}.effect y WHERE y.shard = ANY (ARRAY[o.shard]) AND y.workspace = o.workspace
                                                                 AND y.operation = o.operation AND y.name = o.name AND y.ordinal > o.ordinal)) THEN 2
            ELSE 1 END,
       CASE WHEN counted.member IS NOT NULL THEN 'new' ELSE coalesce(o.state, '') END, coalesce(o.epoch, 0), coalesce(o.policy, ''),
       coalesce(o.result::text, '')
  FROM m LEFT JOIN held ON held.member = m.member
  LEFT JOIN counted ON counted.member = m.member
  LEFT JOIN {schema}.effect o ON o.shard = ANY (ARRAY[m.shard]) AND o.workspace = m.workspace AND o.operation = {1} AND o.name = m.name
                             AND o.ordinal = m.ordinal
