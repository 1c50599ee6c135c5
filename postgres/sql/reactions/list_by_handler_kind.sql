-- Lists the reactions of all workspaces whose handlers are of a kind, one page at a time.
SELECT r.workspace, r.name, r.source, r.events::text, r.streams, r.options::text, r.base, r.state, coalesce(r.waits::text, ''),
       r.created_at, r.updated_at
  FROM {schema}.reaction r
 WHERE r.shard = :shard AND (:workspace = '' OR r.workspace = :workspace) AND r.state <> 'removed' 
   AND (SELECT h.kind FROM {schema}.handler h WHERE h.shard = r.shard AND h.workspace = r.workspace AND h.name = r.options ->> 'handler'::text) = :kind
   AND (r.workspace, r.name) > (:after_workspace, :after_name)
 ORDER BY r.workspace, r.name
 LIMIT :limit
