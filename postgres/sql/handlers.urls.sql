-- The names of handlers that are URLs, in all workspaces.
-- $1 shard, $2 workspace ('' for all)
SELECT DISTINCT h.name
  FROM {schema}.handler h
 WHERE h.shard = $1::smallint AND ($2::text = '' OR h.workspace = $2::text) AND h.kind = 'http'
