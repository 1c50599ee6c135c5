-- The effects of an operation, in the order in which they were first begun.
-- $1 shard, $2 workspace, $3 operation
SELECT x.name, x.ordinal, x.epoch, x.state, x.policy, coalesce(x.result::text, ''), x.begun_at
  FROM {schema}.effect x
 WHERE x.shard = $1::smallint AND x.workspace = $2::text AND x.operation = $3::text
 ORDER BY x.begun_at, x.name, x.ordinal
