-- Stores a definition, unless its name and version exist: then returns the stored one.
-- do
INSERT INTO holdfast_definition (shard, workspace, id, body, created_at)
VALUES (:shard, :workspace, :definition, :body, {now})
ON CONFLICT (shard, workspace, id) DO NOTHING
RETURNING body
-- else
SELECT d.body FROM holdfast_definition AS d WHERE d.shard = :shard AND d.workspace = :workspace AND d.id = :definition
