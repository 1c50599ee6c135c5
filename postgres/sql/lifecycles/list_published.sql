-- Lists the configs that were published through the API, changed at or after a time.
SELECT l.workspace, l.name, l.config, (extract(epoch FROM l.updated_at) * 1000::numeric)::bigint
  FROM {schema}.lifecycle l
 WHERE l.shard = :shard AND (:workspace = '' OR l.workspace = :workspace) AND l.origin = 'door'
   AND l.updated_at >= pg_catalog.to_timestamp(:since::numeric / 1000.0)
 ORDER BY l.updated_at
 LIMIT :limit
