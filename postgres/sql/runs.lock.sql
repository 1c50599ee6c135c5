-- Locks a run, for a transaction that changes one of its steps first.
-- $4 run
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[])
             WITH ORDINALITY AS m(shard, workspace, command, run, member)
), r AS MATERIALIZED (
    SELECT m.member
      FROM m JOIN {schema}.run r ON r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.id = m.run
       FOR UPDATE OF r
)
SELECT m.member, CASE WHEN r.member IS NOT NULL THEN 1 ELSE 0 END, 1
  FROM m
  LEFT JOIN r ON r.member = m.member
