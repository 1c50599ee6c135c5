-- Deletes a removed reaction that has left nothing, unless it was changed meanwhile.
-- $1 shard, $2 workspace, $3 reaction, $4 what it waited for
DELETE FROM {schema}.reaction r
 WHERE r.shard = $1::smallint AND r.workspace = $2::text AND r.name = $3::text AND r.state = 'removed' AND r.waits = $4::text::jsonb
   AND NOT EXISTS (SELECT 1 FROM {schema}.follow f WHERE f.shard = r.shard AND f.workspace = r.workspace AND f.reaction = r.name)
   AND NOT EXISTS (SELECT 1 FROM {schema}.due d WHERE d.shard = r.shard AND d.workspace = r.workspace AND d.reaction = r.name)
RETURNING 1
