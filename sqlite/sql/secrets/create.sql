-- Creates a secret. An existing one is refused.
-- do
INSERT INTO holdfast_named_secret (shard, workspace, name, version, sealed, created_by, created_at, updated_by, updated_at)
SELECT :shard, :workspace, :name, 1, :sealed, :actor, {now}, :actor, {now}
 WHERE true
ON CONFLICT (shard, workspace, name) DO NOTHING
RETURNING 1
-- else
SELECT 0
