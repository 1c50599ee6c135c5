-- Where a webhook's messages go, and the sealed secrets that they are signed with now.
-- $1 shard, $2 workspace, $3 id
SELECT w.url, w.secret, coalesce(CASE WHEN w.former_until > {now} THEN w.former END, '')
  FROM {schema}.webhook w
 WHERE w.shard = $1::smallint AND w.workspace = $2::text AND w.id = $3::text AND w.removed_at IS NULL
