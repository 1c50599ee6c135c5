-- Deletes the key of a subject and stores a tombstone, even for a subject that never had a
-- key: no key is stored for it any more.
WITH {members}, cur AS (
    SELECT s.shard, s.workspace, s.name, s.key IS NOT NULL AS known
      FROM m JOIN {schema}.subject s
        ON s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.name = m.subject
     ORDER BY m.shard, s.workspace, s.name
       FOR UPDATE OF s
), gone AS (
    UPDATE {schema}.subject s
       SET key = NULL, forgotten_at = {now}
      FROM cur
     WHERE s.shard = ANY (ARRAY[cur.shard]) AND s.workspace = cur.workspace AND s.name = cur.name AND cur.known
    RETURNING s.shard, s.workspace, s.name
), made AS (
    INSERT INTO {schema}.subject (shard, workspace, name, created_at, forgotten_at)
    SELECT m.shard, m.workspace, m.subject, t.now, t.now
      FROM m, (SELECT {now} AS now) AS t
     WHERE NOT EXISTS (SELECT 1 FROM cur WHERE cur.shard = m.shard AND cur.workspace = m.workspace AND cur.name = m.subject)
     ORDER BY m.shard, m.workspace, m.subject
    ON CONFLICT (shard, workspace, name) DO NOTHING
    RETURNING shard, workspace, name
)
SELECT m.member,
       CASE WHEN gone.name IS NOT NULL THEN 1 WHEN cur.name IS NOT NULL OR made.name IS NOT NULL THEN 0 ELSE 2 END,
       gone.name IS NOT NULL
  FROM m LEFT JOIN gone ON gone.shard = m.shard AND gone.workspace = m.workspace AND gone.name = m.subject
  LEFT JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.name = m.subject
  LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.name = m.subject
