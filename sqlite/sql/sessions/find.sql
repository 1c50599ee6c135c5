-- Returns a session with its hash, whether it is valid now, and the ms until it expires.
SELECT s.created_at, s.expires_at, s.hash, s.expires_at > t.now, max(s.expires_at - t.now, 0)
  FROM holdfast_session AS s, (SELECT {now} AS now) AS t
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.api_key = :key AND s.id = :id
