-- The configs that the door brought, changed at or after a time.
-- $1 shard, $2 workspace ('' for all), $3 since in ms, $4 limit
SELECT l.workspace, l.name, l.config, (extract(epoch FROM l.updated_at) * 1000::numeric)::bigint
  FROM {schema}.lifecycle l
 WHERE l.shard = $1::smallint AND ($2::text = '' OR l.workspace = $2::text) AND l.origin = 'door'
   AND l.updated_at >= pg_catalog.to_timestamp($3::bigint::numeric / 1000.0)
 ORDER BY l.updated_at
 LIMIT $4::bigint
