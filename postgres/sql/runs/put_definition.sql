-- Stores a definition, unless its name and version exist: then returns the stored one.
WITH {members}, put AS (
    INSERT INTO {schema}.definition (shard, workspace, id, body, created_at)
    SELECT m.shard, m.workspace, m.definition, m.body::json, {now} FROM m
    ON CONFLICT (shard, workspace, id) DO NOTHING
    RETURNING shard, workspace, id
)
SELECT m.member, CASE WHEN put.id IS NOT NULL THEN 1 ELSE 0 END, coalesce(d.body::text, '')
  FROM m LEFT JOIN put ON put.shard = m.shard AND put.workspace = m.workspace AND put.id = m.definition
  LEFT JOIN {schema}.definition d ON d.shard = ANY (ARRAY[m.shard]) AND d.workspace = m.workspace AND d.id = m.definition
