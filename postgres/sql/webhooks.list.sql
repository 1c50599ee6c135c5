-- The webhooks of a workspace, by their ids, without their secrets.
-- $1 shard, $2 workspace, $3 after, $4 limit
SELECT w.id, w.name, w.url, w.events::text, w.streams, w.version, w.created_by, w.created_at,
       coalesce(w.rotated_at, 'epoch'), coalesce(w.former_until, 'epoch')
  FROM {schema}.webhook w
 WHERE w.shard = $1::smallint AND w.workspace = $2::text AND w.id > $3::text AND w.removed_at IS NULL
 ORDER BY w.id
 LIMIT $4::bigint
