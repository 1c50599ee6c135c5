-- Declares a handler, or declares it anew: then its secret stays, unless another is
-- given.
-- $4 name, $5 kind, $6 url, $7 safety, $8 unknown, $9 timeout in ms, $10 secret ('' for the one it has)
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::text[])
             WITH ORDINALITY AS m(shard, workspace, command, name, kind, url, safety, unknown, timeout, secret, member)
), put AS (
    INSERT INTO {schema}.handler AS h (shard, workspace, name, kind, url, safety, unknown, timeout, secret, created_at, updated_at)
    SELECT m.shard, m.workspace, m.name, m.kind, m.url, m.safety, m.unknown, m.timeout, m.secret, t.now, t.now
      FROM m, (SELECT {now} AS now) AS t
    ON CONFLICT (shard, workspace, name) DO UPDATE
       SET kind = excluded.kind, url = excluded.url, safety = excluded.safety, unknown = excluded.unknown, timeout = excluded.timeout,
           secret = CASE WHEN excluded.secret = '' THEN h.secret ELSE excluded.secret END, updated_at = excluded.updated_at
    RETURNING h.shard, h.workspace, h.name, h.created_at = h.updated_at AS created
)
SELECT m.member, 1, CASE WHEN put.created THEN 1 ELSE 0 END
  FROM m LEFT JOIN put ON put.shard = m.shard AND put.workspace = m.workspace AND put.name = m.name
