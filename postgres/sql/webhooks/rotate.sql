-- Stores new secrets of webhooks, each with its event; the previous secret stays valid for
-- the overlap. A webhook that was removed or changed meanwhile is not changed.
WITH {members}, cur AS (
    SELECT m.member, w.id, w.version, w.secret
      FROM m JOIN {schema}.webhook w ON w.shard = ANY (ARRAY[m.shard]) AND w.workspace = m.workspace AND w.id = m.id
     WHERE w.removed_at IS NULL
     ORDER BY m.shard, w.workspace, w.id
       FOR UPDATE OF w
), t AS MATERIALIZED (
    SELECT cur.member, {now} AS now FROM cur
), moved AS (
    UPDATE {schema}.webhook w
       SET secret = m.secret, version = cur.version + 1, rotated_at = t.now,
           former = CASE WHEN m.overlap > 0 THEN cur.secret END,
           former_until = CASE WHEN m.overlap > 0 THEN t.now + m.overlap::float8 * interval '1 ms' END
      FROM m JOIN cur ON cur.member = m.member JOIN t ON t.member = m.member
     WHERE w.shard = ANY (ARRAY[m.shard]) AND w.workspace = m.workspace AND w.id = m.id AND cur.version = m.version AND w.version = m.version
       AND w.removed_at IS NULL
    RETURNING m.member, w.id, w.name, w.url, w.events, w.streams, w.version, w.created_by, w.created_at, w.rotated_at, w.former_until, w.headers, w.secret
), {include history/write}
    SELECT m.shard, m.command, 0, m.workspace, '$webhook/' || m.id, moved.version, 'rotated',
           pg_catalog.json_build_object('overlapMs', m.overlap), NULL, NULL, m.actor, moved.rotated_at
      FROM m JOIN moved ON moved.member = m.member
    {due_notices}
SELECT m.member, CASE WHEN moved.member IS NULL THEN 0 ELSE 1 END,
       coalesce(cur.id, ''), coalesce(moved.name, ''), coalesce(moved.url, ''), coalesce(moved.events::text, '[]'), coalesce(moved.streams, ''),
       coalesce(moved.version, cur.version, -1), coalesce(moved.created_by, ''), coalesce(moved.created_at, 'epoch'),
       coalesce(moved.rotated_at, 'epoch'), coalesce(moved.former_until, 'epoch'),
       coalesce(moved.headers, '{}'), CASE WHEN moved.secret LIKE 'secret:%' THEN moved.secret ELSE '' END
  FROM m LEFT JOIN cur ON cur.member = m.member
  LEFT JOIN moved ON moved.member = m.member
