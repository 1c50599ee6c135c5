-- Returns the current config of a lifecycle.
SELECT l.revision, l.statuses, l.config, coalesce(l.wanted, ''), l.wanted IS NOT NULL AND l.updated_at < {now} - 120000, l.origin, coalesce(l.claims, '')
  FROM holdfast_lifecycle AS l
 WHERE l.shard = :shard AND l.workspace = :workspace AND l.name = :lifecycle
