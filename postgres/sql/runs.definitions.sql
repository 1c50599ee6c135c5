-- Definitions of a workspace, by their ids, behind one of them.
-- $1 shard, $2 workspace, $3 behind, $4 limit
SELECT d.id, d.body::text, d.created_at
  FROM {schema}.definition d
 WHERE d.shard = $1::smallint AND d.workspace = $2::text AND d.id > $3::text
 ORDER BY d.id
 LIMIT $4::bigint
