-- $1 shard, $2 workspace, $3 lifecycle, $4 entity
SELECT e.status, e.version, e.data::text, e.created_at, e.updated_at
  FROM {schema}.entity e
 WHERE e.shard = $1 AND e.workspace = $2 AND e.lifecycle = $3 AND e.id = $4
