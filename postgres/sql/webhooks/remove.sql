-- Removes webhooks and their secrets, each with its event. A removed webhook is not
-- changed.
WITH {members}, cur AS (
    SELECT m.member, w.version
      FROM m JOIN {schema}.webhook w ON w.shard = ANY (ARRAY[m.shard]) AND w.workspace = m.workspace AND w.id = m.id
     WHERE w.removed_at IS NULL
     ORDER BY m.shard, w.workspace, w.id
       FOR UPDATE OF w
), moved AS (
    UPDATE {schema}.webhook w
       SET removed_at = {now}, version = cur.version + 1, secret = '', former = NULL, former_until = NULL
      FROM m JOIN cur ON cur.member = m.member
     WHERE w.shard = ANY (ARRAY[m.shard]) AND w.workspace = m.workspace AND w.id = m.id AND w.removed_at IS NULL
    RETURNING m.member, w.version, w.removed_at
), {include history/write}
    SELECT m.shard, m.command, 0, m.workspace, '$webhook/' || m.id, moved.version, 'removed',
           '{}'::json, NULL, NULL, m.actor, moved.removed_at
      FROM m JOIN moved ON moved.member = m.member
    {due_notices}
SELECT m.member, CASE WHEN moved.member IS NULL THEN 0 ELSE 1 END
  FROM m LEFT JOIN moved ON moved.member = m.member
