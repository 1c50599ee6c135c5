-- Lists the effects of an operation, in the order in which they were first begun.
SELECT x.name, x.ordinal, x.epoch, x.state, x.policy, coalesce(x.result{text}, ''), x.begun_at
  FROM {schema}.effect AS x
 WHERE x.shard = :shard AND x.workspace = :workspace AND x.operation = :operation
 ORDER BY x.begun_at, x.name, x.ordinal
