-- Deletes a lifecycle's config, if it is at the expected revision.
WITH {members}, gone AS (
    DELETE FROM {schema}.lifecycle l
     USING m
     WHERE l.shard = ANY (ARRAY[m.shard]) AND l.workspace = m.workspace AND l.name = m.name AND l.revision = m.expected
    RETURNING m.member
)
SELECT m.member, CASE WHEN gone.member IS NULL THEN 0 ELSE 1 END, 0
  FROM m LEFT JOIN gone ON gone.member = m.member
