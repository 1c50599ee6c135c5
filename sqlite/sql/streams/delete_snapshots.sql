-- Deletes snapshots that cannot be folded any more, because versions after them are gone.
DELETE FROM holdfast_snapshot AS x
 WHERE x.shard = :shard AND x.workspace = :workspace AND x.stream = :stream
   AND EXISTS (SELECT 1 FROM holdfast_stream AS s
                WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
                  AND (x.version < s.first - 1 OR s.closed = 'tombstone'))
