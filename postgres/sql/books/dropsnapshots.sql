-- Deletes the snapshots from which nothing can be folded any more: those that
-- are followed by versions that are gone. Of a tombstone none is left.
DELETE FROM {schema}.snapshot x
 USING {schema}.stream s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
   AND x.shard = s.shard AND x.workspace = s.workspace AND x.stream = s.name
   AND (x.version < s.first - 1 OR s.closed = 'tombstone')
