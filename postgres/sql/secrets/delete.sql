-- Deletes a secret at a version.
WITH {members}, gone AS (
    DELETE FROM {schema}.named_secret s
     USING m
     WHERE s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.name = m.name AND s.version = m.version
    RETURNING m.member
)
SELECT m.member, CASE WHEN gone.member IS NULL THEN 0 ELSE 1 END
  FROM m LEFT JOIN gone ON gone.member = m.member
