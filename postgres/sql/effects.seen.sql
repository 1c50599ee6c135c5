-- Records that a person has seen contradictions of an operation: the first counts. Answers one row for
-- each that there is.
-- $1 shard, $2 workspace, $3 operation, $4 by, $5 a JSON list of ids
WITH ids AS (
    SELECT q.id FROM jsonb_array_elements_text($5::text::jsonb) AS q(id)
), seen AS (
    UPDATE {schema}.late_call l
       SET seen_at = {now}, seen_by = $4::text
     WHERE l.shard = $1::smallint AND l.workspace = $2::text AND l.operation = $3::text AND l.seen_at IS NULL
       AND l.id::text IN (SELECT ids.id FROM ids)
)
SELECT 1 FROM {schema}.late_call l
 WHERE l.shard = $1::smallint AND l.workspace = $2::text AND l.operation = $3::text AND l.id::text IN (SELECT ids.id FROM ids)
