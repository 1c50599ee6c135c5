-- What the webhooks of all workspaces follow, a page at a time.
-- $1 shard, $2 workspace ('' for all); after: $3 workspace, $4 id; $5 limit
SELECT w.workspace, w.id, w.events::text, w.streams
  FROM {schema}.webhook w
 WHERE w.shard = $1::smallint AND ($2::text = '' OR w.workspace = $2::text)
   AND (w.workspace, w.id) > ($3::text, $4::text) AND w.removed_at IS NULL
 ORDER BY w.workspace, w.id
 LIMIT $5::bigint
