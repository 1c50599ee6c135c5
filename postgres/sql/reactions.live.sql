-- Ends the waiting of a reaction, unless it was changed meanwhile.
-- $1 shard, $2 workspace, $3 reaction, $4 what it waited for
UPDATE {schema}.reaction r
   SET state = 'live', waits = NULL
 WHERE r.shard = $1::smallint AND r.workspace = $2::text AND r.name = $3::text
   AND r.state = 'waiting' AND r.waits = $4::text::jsonb
RETURNING 1
