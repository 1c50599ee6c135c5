-- Creates a session if its API key is valid.
-- do
INSERT INTO holdfast_session (shard, workspace, api_key, id, hash, created_at, expires_at)
SELECT :shard, :workspace, :key, :id, :hash, t.now, t.now + :lifetime
  FROM holdfast_api_key AS k, (SELECT {now} AS now) AS t
 WHERE k.workspace = :workspace AND k.id = :key AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > t.now)
ON CONFLICT (shard, workspace, api_key, id) DO NOTHING
RETURNING created_at, expires_at
-- else
SELECT 0, 0
