-- A lifecycle's config, as it is in force.
-- ?1 shard, ?2 workspace, ?3 lifecycle
-- do
SELECT l.revision, l.statuses, l.config, coalesce(l.wanted, ''), l.wanted IS NOT NULL AND l.updated_at < {now} - 120000, l.origin, coalesce(l.claims, '')
  FROM holdfast_lifecycle AS l
 WHERE l.shard = ?1 AND l.workspace = ?2 AND l.name = ?3
