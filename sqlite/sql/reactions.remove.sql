-- Removes a reaction: nothing is marked for it any more, and nobody takes it.
-- ?1 shard, ?2 workspace, ?3 command, ?4 name
-- do
UPDATE holdfast_reaction AS r
   SET state = 'removed', waits = NULL, updated_at = {now}
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.name = ?4 AND r.state <> 'removed'
RETURNING name
-- else
SELECT ''
