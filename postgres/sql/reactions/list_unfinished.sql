-- Lists reactions that wait, or are removed but not deleted, in all workspaces of a shard.
SELECT r.workspace, r.name, r.state
  FROM {schema}.reaction r
 WHERE r.shard = :shard AND (:workspace = '' OR r.workspace = :workspace) AND r.state <> 'live'
 ORDER BY r.workspace, r.name
 LIMIT :limit
