-- Ends the waiting of a reaction, unless it was changed meanwhile.
UPDATE holdfast_reaction AS r
   SET state = 'live', waits = NULL
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.name = :reaction AND r.state = 'waiting' AND coalesce(r.waits, '') = :awaited
RETURNING 1
