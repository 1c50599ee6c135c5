-- Returns the current config of a lifecycle.
SELECT l.revision, l.statuses::text, l.config, coalesce(l.wanted::text, ''), l.wanted IS NOT NULL AND l.updated_at < {now} - interval '2 minutes', l.origin, coalesce(l.claims::text, '')
  FROM {schema}.lifecycle l
 WHERE l.shard = :shard AND l.workspace = :workspace AND l.name = :lifecycle
