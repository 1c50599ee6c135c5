-- The reactions of a workspace, or the one that is named.
-- ?1 shard, ?2 workspace, ?3 name ('' for all)
-- do
SELECT r.name, r.source, r.events, r.streams, r.options, r.base, r.state, coalesce(r.waits, ''), r.created_at, r.updated_at
  FROM holdfast_reaction AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND (?3 = '' OR r.name = ?3)
 ORDER BY r.name
