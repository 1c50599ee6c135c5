-- $1 shard, $2 workspace, $3 kind, $4 scope
SELECT s.version, s.state::text
  FROM {schema}.scope s
 WHERE s.shard = $1 AND s.workspace = $2 AND s.kind = $3 AND s.id = $4 AND s.state IS NOT NULL
   AND (s.expires_at IS NULL OR s.expires_at > {now})
