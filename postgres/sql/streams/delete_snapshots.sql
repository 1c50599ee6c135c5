-- Deletes snapshots that cannot be folded any more, because versions after them are gone.
-- Deletes all snapshots of a tombstone.
DELETE FROM {schema}.snapshot x
 USING {schema}.stream s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
   AND x.shard = s.shard AND x.workspace = s.workspace AND x.stream = s.name
   AND (x.version < s.first - 1 OR s.closed = 'tombstone')
