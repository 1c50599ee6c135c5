-- Records an administrative action, in the transaction of the action.
-- do
INSERT INTO holdfast_audit (shard, workspace, id, action, subject, actor, request, before, after, at)
VALUES (:shard, :workspace, :id, :action, :subject, :actor, :request, :before, :after, {now})
ON CONFLICT (shard, workspace, id) DO NOTHING
RETURNING 1
-- else
SELECT 1
