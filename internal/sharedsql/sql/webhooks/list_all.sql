-- Lists what the webhooks of all workspaces follow, one page at a time.
SELECT w.workspace, w.id, w.events{text}, w.streams
  FROM {schema}.webhook AS w
 WHERE w.shard = :shard AND (:workspace = '' OR w.workspace = :workspace)
   AND (w.workspace, w.id) > (:after_workspace, :after_id) AND w.removed_at IS NULL
 ORDER BY w.workspace, w.id
 LIMIT :limit
