-- Records that a person has seen contradictions of an operation, if it has all of them: the first who
-- acknowledges one counts. Answers one row for each.
-- $1 shard, $2 workspace, $3 operation, $4 by, $5 a JSON list of ids, each once
WITH ids AS (
    SELECT q.id FROM pg_catalog.jsonb_array_elements_text($5::text::jsonb) AS q(id)
), there AS (
    SELECT l.id FROM {schema}.late_call l
     WHERE l.shard = $1::smallint AND l.workspace = $2::text AND l.operation = $3::text AND l.id::text IN (SELECT ids.id FROM ids)
), seen AS (
    UPDATE {schema}.late_call l
       SET seen_at = {now}, seen_by = $4::text
     WHERE l.shard = $1::smallint AND l.workspace = $2::text AND l.operation = $3::text AND l.seen_at IS NULL
       AND l.id IN (SELECT there.id FROM there) AND (SELECT pg_catalog.count(*) FROM there) = (SELECT pg_catalog.count(*) FROM ids)
)
SELECT 1 FROM there
