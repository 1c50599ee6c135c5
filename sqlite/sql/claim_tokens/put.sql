-- Stores the claim of a token.
-- do
INSERT INTO holdfast_token (shard, workspace, hash, lifecycle, entity, operation, epoch, requester, expires_at)
VALUES (:shard, :workspace, :hash, :lifecycle, :entity, :operation, :epoch, :requester, {now} + :kept)
ON CONFLICT (shard, workspace, hash) DO NOTHING
RETURNING 1
-- else
SELECT 1
