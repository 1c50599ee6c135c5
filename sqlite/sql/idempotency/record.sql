-- Stores a request with its response, if there is none under its key.
-- do
INSERT INTO holdfast_request (shard, workspace, key, fingerprint, state, epoch, status, answer, created_at, expires_at)
SELECT :shard, :workspace, :key, :fingerprint, 'done', t.now * 1000000 + abs(random() % 500000), :status, :answer, t.now, t.now + :ttl
  FROM (SELECT {now} AS now) AS t
 WHERE true
ON CONFLICT (shard, workspace, key) DO NOTHING
RETURNING 0
-- else
SELECT 0
