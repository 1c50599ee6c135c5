-- The reactions of a workspace, or the one that is named.
-- $1 shard, $2 workspace, $3 name ('' for all)
SELECT r.name, r.source, r.events::text, r.streams, r.options::text, r.base, r.state, coalesce(r.waits::text, ''),
       r.created_at, r.updated_at
  FROM {schema}.reaction r
 WHERE r.shard = $1::smallint AND r.workspace = $2::text AND ($3::text = '' OR r.name = $3)
 ORDER BY r.name
