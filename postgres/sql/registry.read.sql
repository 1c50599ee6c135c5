-- The revision of a workspace's registry, and its reactions.
-- $1 shard, $2 workspace
SELECT coalesce((SELECT g.revision FROM {schema}.registry g WHERE g.shard = $1::smallint AND g.workspace = $2::text), 0),
       coalesce(r.name, ''), coalesce(r.source, ''), coalesce(r.events::text, ''), coalesce(r.streams, '')
  FROM (SELECT 1) AS one
  LEFT JOIN {schema}.reaction r ON r.shard = $1::smallint AND r.workspace = $2::text AND r.state <> 'removed'
 ORDER BY r.name
