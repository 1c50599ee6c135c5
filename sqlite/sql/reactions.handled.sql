-- The reactions of all workspaces whose handlers are of a kind, a page at a time.
-- ?1 shard, ?2 workspace ('' for all), ?3 kind; after: ?4 workspace, ?5 name; ?6 limit
-- do
SELECT r.workspace, r.name, r.source, r.events, r.streams, r.options, r.base, r.state, coalesce(r.waits, ''),
       r.created_at, r.updated_at
  FROM holdfast_reaction AS r
  JOIN holdfast_handler AS h ON h.shard = r.shard AND h.workspace = r.workspace AND h.name = r.options ->> 'handler'
 WHERE r.shard = ?1 AND (?2 = '' OR r.workspace = ?2) AND r.state <> 'removed' AND h.kind = ?3
   AND (r.workspace, r.name) > (?4, ?5)
 ORDER BY r.workspace, r.name
 LIMIT +?6
