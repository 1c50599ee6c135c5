-- Acknowledges contradictions of an operation, if all of them belong to it. The first acknowledgement
-- of each one is stored. Returns one row for each.
-- :ids a JSON list of ids, each once
WITH ids AS (
    SELECT q.id FROM pg_catalog.jsonb_array_elements_text(:ids::jsonb) AS q(id)
), there AS (
    SELECT l.id FROM {schema}.late_call l
     WHERE l.shard = :shard AND l.workspace = :workspace AND l.operation = :operation AND l.id::text IN (SELECT ids.id FROM ids)
), seen AS (
    UPDATE {schema}.late_call l
       SET seen_at = {now}, seen_by = :by
     WHERE l.shard = :shard AND l.workspace = :workspace AND l.operation = :operation AND l.seen_at IS NULL
       AND l.id IN (SELECT there.id FROM there) AND (SELECT pg_catalog.count(*) FROM there) = (SELECT pg_catalog.count(*) FROM ids)
)
SELECT 1 FROM there
