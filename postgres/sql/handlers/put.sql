-- Declares a handler or replaces its declaration, which retains its secret unless a new one
-- is given.
-- :secret ('' to retain the current one)
WITH {members}, put AS (
    INSERT INTO {schema}.handler AS h (shard, workspace, name, kind, url, safety, unknown, timeout, secret, headers, created_at, updated_at)
    SELECT m.shard, m.workspace, m.name, m.kind, m.url, m.safety, m.unknown, m.timeout, m.secret, m.headers, t.now, t.now
      FROM m, (SELECT {now} AS now) AS t
    ON CONFLICT (shard, workspace, name) DO UPDATE
       SET kind = excluded.kind, url = excluded.url, safety = excluded.safety, unknown = excluded.unknown, timeout = excluded.timeout, headers = excluded.headers,
           secret = CASE WHEN excluded.secret = '' THEN h.secret ELSE excluded.secret END, updated_at = excluded.updated_at
    RETURNING h.shard, h.workspace, h.name, h.created_at = h.updated_at AS created
)
SELECT m.member, 1, CASE WHEN put.created THEN 1 ELSE 0 END
  FROM m LEFT JOIN put ON put.shard = m.shard AND put.workspace = m.workspace AND put.name = m.name
