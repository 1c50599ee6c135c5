-- $1 shard, $2 workspace, $3 stream, $4 kind
SELECT s.version, s.data::text
  FROM {schema}.snapshot s
 WHERE s.shard = $1 AND s.workspace = $2 AND s.stream = $3 AND s.kind = $4
