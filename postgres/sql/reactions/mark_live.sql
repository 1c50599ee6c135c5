-- Ends the waiting of a reaction, unless it was changed meanwhile.
UPDATE {schema}.reaction r
   SET state = 'live', waits = NULL
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.name = :reaction
   AND r.state = 'waiting' AND r.waits = :awaited::jsonb
RETURNING 1
