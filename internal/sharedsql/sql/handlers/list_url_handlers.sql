-- Lists the names of URL handlers in all workspaces.
SELECT DISTINCT h.name
  FROM {schema}.handler AS h
 WHERE h.shard = :shard AND (:workspace = '' OR h.workspace = :workspace) AND h.kind = 'http'
