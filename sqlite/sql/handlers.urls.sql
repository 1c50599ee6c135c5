-- The names of handlers that are URLs, in all workspaces.
-- ?1 shard, ?2 workspace ('' for all)
-- do
SELECT DISTINCT h.name
  FROM holdfast_handler AS h
 WHERE h.shard = ?1 AND (?2 = '' OR h.workspace = ?2) AND h.kind = 'http'
