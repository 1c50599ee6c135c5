-- Takes a handler away.
-- ?1 shard, ?2 workspace, ?3 command, ?4 name
-- do
DELETE FROM holdfast_handler AS h
 WHERE h.shard = ?1 AND h.workspace = ?2 AND h.name = ?4
RETURNING 1
-- else
SELECT 0
