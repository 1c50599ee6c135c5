-- Moves the database's time, for tests.
-- $4 by how many milliseconds
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::bigint[])
             WITH ORDINALITY AS m(shard, workspace, command, by, member)
), moved AS (
    UPDATE {schema}.clock c SET shift = c.shift + m.by * interval '1 ms'
      FROM m WHERE c.one
    RETURNING m.member, c.shift
)
SELECT moved.member, 1, (extract(epoch FROM moved.shift) * 1000)::bigint FROM moved
