-- Deletes a session.
WITH {members}, gone AS (
    DELETE FROM {schema}.session s
     USING m
     WHERE s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.api_key = m.key AND s.id = m.id
    RETURNING m.member
)
SELECT m.member, CASE WHEN gone.member IS NULL THEN 0 ELSE 1 END
  FROM m LEFT JOIN gone ON gone.member = m.member
