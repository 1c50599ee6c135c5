-- A lifecycle's config, as it is in force.
-- $1 shard, $2 workspace, $3 lifecycle
SELECT l.revision, l.statuses::text, l.config, coalesce(l.wanted::text, ''), l.wanted IS NOT NULL AND l.updated_at < {now} - interval '2 minutes', l.origin, coalesce(l.claims::text, '')
  FROM {schema}.lifecycle l
 WHERE l.shard = $1::smallint AND l.workspace = $2::text AND l.name = $3::text
