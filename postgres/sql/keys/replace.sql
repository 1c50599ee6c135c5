-- Sets API keys to expire, each after its overlap, because another key succeeds it, and
-- writes the events. A key is replaced once, and only while it is valid: the row is locked
-- first, and the time is read afterwards.
WITH {members}, cur AS (
    SELECT m.member, k.id, k.version, k.name, k.role, k.requesters, k.handlers, k.restrictions, k.rate, k.successor, k.created_by, k.created_at, k.expires_at, k.revoked_at, k.last_used_at
      FROM m JOIN {schema}.api_key k ON k.workspace = m.workspace AND k.id = m.id
     ORDER BY k.id
       FOR UPDATE OF k
), t AS MATERIALIZED (
    SELECT cur.member, {now} AS now FROM cur
), moved AS (
    UPDATE {schema}.api_key k
       SET successor = m.successor, expires_at = least(cur.expires_at, t.now + m.overlap::float8 * interval '1 ms'), version = cur.version + 1
      FROM m JOIN cur ON cur.member = m.member JOIN t ON t.member = m.member
     WHERE k.workspace = m.workspace AND k.id = m.id
       AND cur.revoked_at IS NULL AND cur.successor IS NULL AND (cur.expires_at IS NULL OR cur.expires_at > t.now)
       AND k.revoked_at IS NULL AND k.successor IS NULL
    RETURNING m.member, k.name, k.role, k.requesters, k.handlers, k.restrictions, k.successor, k.version, k.expires_at, k.revoked_at, t.now
), {include history/write}
    SELECT m.shard, m.command, 0, m.workspace, '$key/' || m.id, moved.version, 'rotated',
           pg_catalog.json_build_object('name', moved.name, 'role', moved.role, 'requesters', moved.requesters, 'handlers', moved.handlers, 'restrictions', moved.restrictions,
                             'expiresAt', pg_catalog.to_char(moved.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'successor', moved.successor),
           NULL, NULL, m.actor, moved.now
      FROM m JOIN moved ON moved.member = m.member
    {due_notices}
SELECT m.member, CASE WHEN moved.member IS NULL THEN 0 ELSE 1 END,
       coalesce(cur.id, ''), coalesce(cur.name, ''), coalesce(cur.role, ''), coalesce(cur.requesters::text, '[]'), coalesce(cur.handlers::text, '[]'), coalesce(cur.restrictions::text, '{}'), coalesce(cur.rate, 0),
       coalesce(moved.successor, cur.successor, ''), coalesce(cur.created_by, ''), coalesce(cur.created_at, 'epoch'),
       coalesce(moved.expires_at, cur.expires_at, 'epoch'), coalesce(moved.revoked_at, cur.revoked_at, 'epoch'), coalesce(cur.last_used_at, 'epoch')
  FROM m LEFT JOIN cur ON cur.member = m.member
  LEFT JOIN moved ON moved.member = m.member
