-- Remembers what a token stands for.
-- ?1 shard, ?2 workspace, ?3 command, ?4 hash, ?5 lifecycle, ?6 entity, ?7 operation, ?8 epoch, ?9 requester, ?10 how long in ms
-- do
INSERT INTO holdfast_token (shard, workspace, hash, lifecycle, entity, operation, epoch, requester, expires_at)
VALUES (?1, ?2, ?4, ?5, ?6, ?7, ?8, ?9, {now} + ?10)
ON CONFLICT (shard, workspace, hash) DO NOTHING
RETURNING 1
-- else
SELECT 1
