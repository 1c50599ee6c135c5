-- Deletes a handler.
WITH {members}, gone AS (
    DELETE FROM {schema}.handler h
     USING m
     WHERE h.shard = ANY (ARRAY[m.shard]) AND h.workspace = m.workspace AND h.name = m.name
    RETURNING m.member
)
SELECT m.member, CASE WHEN gone.member IS NULL THEN 0 ELSE 1 END, 0
  FROM m LEFT JOIN gone ON gone.member = m.member
