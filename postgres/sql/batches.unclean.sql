-- Notes why an item could not be cleaned up after, and has it tried again later.
-- $4 batch, $5 key, $6 sweeps, $7 whether it was dirty, $8 delay in ms, $9 error
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[])
             WITH ORDINALITY AS m(shard, workspace, command, batch, key, sweeps, dirty, delay, error, member)
), b AS MATERIALIZED (
    SELECT m.member, m.key, m.sweeps, m.dirty, m.delay, m.error, b.status, b.shard, b.workspace, b.id
      FROM m JOIN {schema}.batch b ON b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
       FOR UPDATE OF b
), swept AS (
    UPDATE {schema}.item i
       SET sweep_at = {now} + b.delay::float8 * interval '1 ms'
      FROM b
     WHERE i.shard = ANY (ARRAY[b.shard]) AND i.workspace = b.workspace AND i.batch = b.id AND i.key = b.key AND i.sweeps = b.sweeps AND i.dirty = (b.dirty = 1)
    RETURNING b.member
), moved AS (
    UPDATE {schema}.batch c
       SET error = CASE WHEN b.status IN ('CANCELLED', 'COMPLETED') THEN c.error ELSE b.error END
      FROM b JOIN swept ON swept.member = b.member
     WHERE c.shard = ANY (ARRAY[b.shard]) AND c.workspace = b.workspace AND c.id = b.id
    RETURNING b.member
)
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1 ELSE 0 END, 1
  FROM m
  LEFT JOIN moved ON moved.member = m.member
