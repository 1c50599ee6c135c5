-- A definition of a workspace.
-- $1 shard, $2 workspace, $3 definition
SELECT d.id, d.body::text, d.created_at
  FROM {schema}.definition d
 WHERE d.shard = $1::smallint AND d.workspace = $2::text AND d.id = $3::text
