-- Deletes a removed reaction that has no rows left, unless it was changed meanwhile.
DELETE FROM {schema}.reaction r
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.name = :reaction AND r.state = 'removed' AND r.waits = :awaited::jsonb
   AND NOT EXISTS (SELECT 1 FROM {schema}.follow f WHERE f.shard = r.shard AND f.workspace = r.workspace AND f.reaction = r.name)
   AND NOT EXISTS (SELECT 1 FROM {schema}.due d WHERE d.shard = r.shard AND d.workspace = r.workspace AND d.reaction = r.name)
RETURNING 1
