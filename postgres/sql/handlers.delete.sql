-- Takes a handler away.
-- $4 name
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[]) WITH ORDINALITY AS m(shard, workspace, command, name, member)
), gone AS (
    DELETE FROM {schema}.handler h
     USING m
     WHERE h.shard = ANY (ARRAY[m.shard]) AND h.workspace = m.workspace AND h.name = m.name
    RETURNING m.member
)
SELECT m.member, CASE WHEN gone.member IS NULL THEN 0 ELSE 1 END, 0
  FROM m LEFT JOIN gone ON gone.member = m.member
