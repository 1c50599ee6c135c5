-- The revision of a workspace's registry, and its reactions.
-- ?1 shard, ?2 workspace
-- do
SELECT coalesce((SELECT g.revision FROM holdfast_registry AS g WHERE g.shard = ?1 AND g.workspace = ?2), 0),
       coalesce(r.name, ''), coalesce(r.source, ''), coalesce(r.events, ''), coalesce(r.streams, '')
  FROM (SELECT 1) AS one
  LEFT JOIN holdfast_reaction AS r ON r.shard = ?1 AND r.workspace = ?2 AND r.state <> 'removed'
 ORDER BY r.name
