-- Who was refused, the latest first.
-- $1 shard, $2 workspace, $3 lifecycle, $4 entity, $5 limit
SELECT a.id, a.step, a.requester, a.code, a.detail::text, a.at
  FROM {schema}.attempt a
 WHERE a.shard = $1::smallint AND a.workspace = $2::text AND a.lifecycle = $3::text AND a.entity = $4::text
 ORDER BY a.id DESC
 LIMIT $5::bigint
