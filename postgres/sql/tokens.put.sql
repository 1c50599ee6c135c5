-- Remembers what a token stands for.
-- $4 hash, $5 lifecycle, $6 entity, $7 operation, $8 epoch, $9 requester, $10 how long in ms
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::bigint[])
             WITH ORDINALITY AS m(shard, workspace, command, hash, lifecycle, entity, operation, epoch, requester, kept, member)
), put AS (
    INSERT INTO {schema}.token AS t (shard, workspace, hash, lifecycle, entity, operation, epoch, requester, expires_at)
    SELECT m.shard, m.workspace, m.hash, m.lifecycle, m.entity, m.operation, m.epoch, m.requester, {now} + m.kept::float8 * interval '1 ms'
      FROM m
    ON CONFLICT (shard, workspace, hash) DO NOTHING
)
SELECT m.member, 1, 1
  FROM m
