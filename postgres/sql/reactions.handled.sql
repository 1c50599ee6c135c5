-- The reactions of all workspaces whose handlers are of a kind, a page at a time.
-- $1 shard, $2 workspace ('' for all), $3 kind; after: $4 workspace, $5 name; $6 limit
SELECT r.workspace, r.name, r.source, r.events::text, r.streams, r.options::text, r.base, r.state, coalesce(r.waits::text, ''),
       r.created_at, r.updated_at
  FROM {schema}.reaction r
 WHERE r.shard = $1::smallint AND ($2::text = '' OR r.workspace = $2::text) AND r.state <> 'removed' 
   AND (SELECT h.kind FROM {schema}.handler h WHERE h.shard = r.shard AND h.workspace = r.workspace AND h.name = r.options ->> 'handler'::text) = $3::text
   AND (r.workspace, r.name) > ($4::text, $5::text)
 ORDER BY r.workspace, r.name
 LIMIT $6::bigint
