-- Stores the claim of a token.
WITH {members}, put AS (
    INSERT INTO {schema}.token AS t (shard, workspace, hash, lifecycle, entity, operation, epoch, requester, expires_at)
    SELECT m.shard, m.workspace, m.hash, m.lifecycle, m.entity, m.operation, m.epoch, m.requester, {now} + m.kept::float8 * interval '1 ms'
      FROM m
    ON CONFLICT (shard, workspace, hash) DO NOTHING
)
SELECT m.member, 1, 1
  FROM m
