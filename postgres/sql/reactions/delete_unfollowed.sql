-- Deletes the positions of a reaction on streams that it no longer follows.
-- :streams a JSON list
DELETE FROM {schema}.follow f
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = :reaction
   AND f.stream IN (SELECT q.stream FROM pg_catalog.jsonb_array_elements_text(:streams::jsonb) AS q(stream))
RETURNING 1
