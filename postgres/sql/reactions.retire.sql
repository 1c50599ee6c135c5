-- Forgets where a reaction stands on streams that it does not follow any more.
-- $1 shard, $2 workspace, $3 reaction, $4 streams as a JSON list
DELETE FROM {schema}.follow f
 WHERE f.shard = $1::smallint AND f.workspace = $2::text AND f.reaction = $3::text
   AND f.stream IN (SELECT q.stream FROM pg_catalog.jsonb_array_elements_text($4::text::jsonb) AS q(stream))
RETURNING 1
