-- The webhooks of a workspace, by their ids, without their secrets.
-- ?1 shard, ?2 workspace, ?3 after, ?4 limit
-- do
SELECT w.id, w.name, w.url, w.events, w.streams, w.version, w.created_by, w.created_at, coalesce(w.rotated_at, 0), coalesce(w.former_until, 0)
  FROM holdfast_webhook AS w
 WHERE w.shard = ?1 AND w.workspace = ?2 AND w.id > ?3 AND w.removed_at IS NULL
 ORDER BY w.id
 LIMIT +?4
