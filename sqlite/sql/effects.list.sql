-- The effects of an operation, in the order in which they were first begun.
-- ?1 shard, ?2 workspace, ?3 operation
-- do
SELECT x.name, x.ordinal, x.epoch, x.state, x.policy, coalesce(x.result, ''), x.begun_at
  FROM holdfast_effect AS x
 WHERE x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?3
 ORDER BY x.begun_at, x.name, x.ordinal
