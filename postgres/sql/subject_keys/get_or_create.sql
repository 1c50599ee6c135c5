-- Stores the key of a subject that has none, or returns the stored one: concurrent callers
-- all get the same key. Returns NULL for a forgotten subject.
WITH {members}, made AS (
    INSERT INTO {schema}.subject (shard, workspace, name, key, created_at)
    SELECT m.shard, m.workspace, m.subject, pg_catalog.decode(m.key, 'hex'), {now}
      FROM m
     ORDER BY m.shard, m.workspace, m.subject
    ON CONFLICT (shard, workspace, name) DO NOTHING
    RETURNING shard, workspace, name, key
)
SELECT m.member,
       CASE WHEN made.name IS NOT NULL THEN 1 WHEN s.name IS NOT NULL THEN 0 ELSE 2 END,
       coalesce(made.key, s.key)
  FROM m LEFT JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.name = m.subject
  LEFT JOIN {schema}.subject s ON s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.name = m.subject
