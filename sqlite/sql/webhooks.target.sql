-- Where a webhook's messages go, and the sealed secrets that they are signed with now.
-- ?1 shard, ?2 workspace, ?3 id
-- do
SELECT w.url, w.secret, coalesce(CASE WHEN w.former_until > {now} THEN w.former END, '')
  FROM holdfast_webhook AS w
 WHERE w.shard = ?1 AND w.workspace = ?2 AND w.id = ?3 AND w.removed_at IS NULL
