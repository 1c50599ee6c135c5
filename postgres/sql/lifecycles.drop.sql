-- Takes a lifecycle's config away, if it is at the revision that is expected.
-- $1 shard, $2 workspace, $3 command, $4 lifecycle, $5 expected
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::bigint[])
             WITH ORDINALITY AS m(shard, workspace, command, name, expected, member)
), gone AS (
    DELETE FROM {schema}.lifecycle l
     USING m
     WHERE l.shard = ANY (ARRAY[m.shard]) AND l.workspace = m.workspace AND l.name = m.name AND l.revision = m.expected
    RETURNING m.member
)
SELECT m.member, CASE WHEN gone.member IS NULL THEN 0 ELSE 1 END, 0
  FROM m LEFT JOIN gone ON gone.member = m.member
