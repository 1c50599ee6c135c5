-- What a token stands for.
-- $1 shard, $2 workspace, $3 hash
SELECT t.lifecycle, t.entity, t.operation, t.epoch, t.requester
  FROM {schema}.token t
 WHERE t.shard = $1::smallint AND t.workspace = $2::text AND t.hash = $3::text
