-- Deletes the snapshots from which nothing can be folded any more: those that
-- are followed by versions that are gone. Of a tombstone none is left.
-- ?1 shard, ?2 workspace, ?3 stream
-- do
DELETE FROM holdfast_snapshot AS x
 WHERE x.shard = ?1 AND x.workspace = ?2 AND x.stream = ?3
   AND EXISTS (SELECT 1 FROM holdfast_stream AS s
                WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = ?3
                  AND (x.version < s.first - 1 OR s.closed = 'tombstone'))
