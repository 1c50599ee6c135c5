-- Keeps a definition, unless there is one of its name and version: that one is answered.
-- ?1 shard, ?2 workspace, ?3 command, ?4 definition, ?5 body
-- do
INSERT INTO holdfast_definition (shard, workspace, id, body, created_at)
VALUES (?1, ?2, ?4, ?5, {now})
ON CONFLICT (shard, workspace, id) DO NOTHING
RETURNING body
-- else
SELECT d.body FROM holdfast_definition AS d WHERE d.shard = ?1 AND d.workspace = ?2 AND d.id = ?4
