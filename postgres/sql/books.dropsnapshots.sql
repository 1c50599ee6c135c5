-- Deletes the snapshots from which nothing can be folded any more: those that
-- are followed by versions that are gone. Of a tombstone none is left.
-- $1 shard, $2 workspace, $3 stream
DELETE FROM {schema}.snapshot x
 USING {schema}.stream s
 WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.name = $3::text
   AND x.shard = s.shard AND x.workspace = s.workspace AND x.stream = s.name
   AND (x.version < s.first - 1 OR s.closed = 'tombstone')
