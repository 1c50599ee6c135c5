-- Who was refused, the latest first.
-- ?1 shard, ?2 workspace, ?3 lifecycle, ?4 entity, ?5 limit
-- do
SELECT a.id, a.step, a.requester, a.code, a.detail, a.at
  FROM holdfast_attempt AS a
 WHERE a.shard = ?1 AND a.workspace = ?2 AND a.lifecycle = ?3 AND a.entity = ?4
 ORDER BY a.id DESC
 LIMIT +?5
