-- What the webhooks of all workspaces follow, a page at a time.
-- ?1 shard, ?2 workspace ('' for all); after: ?3 workspace, ?4 id; ?5 limit
-- do
SELECT w.workspace, w.id, w.events, w.streams
  FROM holdfast_webhook AS w
 WHERE w.shard = ?1 AND (?2 = '' OR w.workspace = ?2)
   AND (w.workspace, w.id) > (?3, ?4) AND w.removed_at IS NULL
 ORDER BY w.workspace, w.id
 LIMIT +?5
