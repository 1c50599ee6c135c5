-- Ends the waiting of a reaction, unless it was changed meanwhile.
-- ?1 shard, ?2 workspace, ?3 reaction, ?4 what it waited for
-- do
UPDATE holdfast_reaction AS r
   SET state = 'live', waits = NULL
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.name = ?3 AND r.state = 'waiting' AND coalesce(r.waits, '') = ?4
RETURNING 1
