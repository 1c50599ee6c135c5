-- Creates sessions, each if its API key is valid. The key is locked first, and the time is read afterwards.
-- :lifetime in ms
WITH {members}, cur AS (
    SELECT m.member, k.expires_at, k.revoked_at
      FROM m
     CROSS JOIN LATERAL (
           SELECT k.expires_at, k.revoked_at FROM {schema}.api_key k
            WHERE k.workspace = m.workspace AND k.id = m.key
              FOR UPDATE) AS k
), t AS MATERIALIZED (
    SELECT cur.member, {now} AS now FROM cur
), made AS (
    INSERT INTO {schema}.session (shard, workspace, api_key, id, hash, created_at, expires_at)
    SELECT m.shard, m.workspace, m.key, m.id, m.hash, t.now, t.now + m.lifetime::float8 * interval '1 ms'
      FROM m JOIN cur ON cur.member = m.member JOIN t ON t.member = m.member
     WHERE cur.revoked_at IS NULL AND (cur.expires_at IS NULL OR cur.expires_at > t.now)
     ORDER BY m.shard, m.workspace, m.key, m.id
    ON CONFLICT (shard, workspace, api_key, id) DO NOTHING
    RETURNING shard, workspace, api_key, id, created_at, expires_at
)
SELECT m.member, CASE WHEN made.id IS NULL THEN 0 ELSE 1 END, coalesce(made.created_at, 'epoch'), coalesce(made.expires_at, 'epoch')
  FROM m LEFT JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.api_key = m.key AND made.id = m.id
