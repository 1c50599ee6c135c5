-- Creates secrets. An existing one is refused.
WITH {members}, made AS (
    INSERT INTO {schema}.named_secret (shard, workspace, name, version, sealed, created_by, created_at, updated_by, updated_at)
    SELECT m.shard, m.workspace, m.name, 1, m.sealed, m.actor, t.now, m.actor, t.now
      FROM m, (SELECT {now} AS now) AS t
     ORDER BY m.shard, m.workspace, m.name
    ON CONFLICT (shard, workspace, name) DO NOTHING
    RETURNING shard, workspace, name
)
SELECT m.member, CASE WHEN made.name IS NULL THEN 0 ELSE 1 END
  FROM m LEFT JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.name = m.name
