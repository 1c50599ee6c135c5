-- Notes which operation a transition has fired, under a hold that has not run out: once.
-- $4 run, $5 step, $6 visit, $7 epoch, $8 operation
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::text[])
             WITH ORDINALITY AS m(shard, workspace, command, run, step, visit, epoch, operation, member)
), cur AS MATERIALIZED (
    SELECT m.member, s.shard, s.workspace, s.run, s.name, s.visit, s.epoch, s.until, s.fired, m.epoch AS wanted, m.operation
      FROM m JOIN {schema}.step s ON s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.run = m.run AND s.name = m.step AND s.visit = m.visit
       FOR UPDATE OF s
), put AS (
    UPDATE {schema}.step s
       SET fired = cur.operation
      FROM cur
     WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.run = cur.run AND s.name = cur.name AND s.visit = cur.visit
       AND cur.epoch = cur.wanted AND cur.until > {now} AND cur.fired IS NULL
    RETURNING cur.member
)
SELECT m.member, CASE WHEN put.member IS NOT NULL THEN 1 ELSE 0 END, 1
  FROM m
  LEFT JOIN put ON put.member = m.member
