-- Assigns a shard to a workspace, or returns the one that it has.
WITH {members}, made AS (
    INSERT INTO {schema}.workspace (name, shard, created_at)
    SELECT m.workspace, m.proposed, {now} FROM m ORDER BY m.workspace
    ON CONFLICT (name) DO NOTHING
    RETURNING name, shard
)
SELECT m.member, CASE WHEN made.name IS NOT NULL OR w.name IS NOT NULL THEN 1 ELSE 2 END,
       coalesce(made.shard, w.shard, 0)
  FROM m LEFT JOIN made ON made.name = m.workspace
  LEFT JOIN LATERAL (SELECT w.name, w.shard FROM {schema}.workspace w WHERE w.name = m.workspace LIMIT 1) AS w ON true
