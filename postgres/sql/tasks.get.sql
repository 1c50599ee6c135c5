-- $1 shard, $2 workspace, $3 queue, $4 task
SELECT k.state, k.version, k.epoch, k.failures, k.deaths, coalesce(k.output::text, ''), coalesce(k.error, '')
  FROM {schema}.task k
 WHERE k.shard = $1 AND k.workspace = $2 AND k.queue = $3 AND k.id = $4
