-- Keeps a definition, unless there is one of its name and version: that one is answered.
-- do
INSERT INTO holdfast_definition (shard, workspace, id, body, created_at)
VALUES (:shard, :workspace, :definition, :body, {now})
ON CONFLICT (shard, workspace, id) DO NOTHING
RETURNING body
-- else
SELECT d.body FROM holdfast_definition AS d WHERE d.shard = :shard AND d.workspace = :workspace AND d.id = :definition
