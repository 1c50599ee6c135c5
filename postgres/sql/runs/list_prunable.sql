-- Lists runs past their retention, in all workspaces.
SELECT r.workspace, r.id
  FROM {schema}.run r
 WHERE r.shard = :shard AND r.prune_at <= (SELECT {now}) AND (:workspace = '' OR r.workspace = :workspace)
 ORDER BY r.prune_at
 LIMIT :limit
