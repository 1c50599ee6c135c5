-- Lists the reactions of all workspaces whose handlers are of a kind, one page at a time.
SELECT r.workspace, r.name, r.source, r.events, r.streams, r.options, r.base, r.state, coalesce(r.waits, ''),
       r.created_at, r.updated_at
  FROM holdfast_reaction AS r
  JOIN holdfast_handler AS h ON h.shard = r.shard AND h.workspace = r.workspace AND h.name = r.options ->> 'handler'
 WHERE r.shard = :shard AND (:workspace = '' OR r.workspace = :workspace) AND r.state <> 'removed' AND h.kind = :kind
   AND (r.workspace, r.name) > (:after_workspace, :after_name)
 ORDER BY r.workspace, r.name
 LIMIT :limit
