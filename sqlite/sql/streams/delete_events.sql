-- Deletes events of a stream below its first retained version.
DELETE FROM holdfast_event AS e
 WHERE e.shard = :shard AND e.workspace = :workspace AND e.stream = :stream AND e.version >= :from AND e.version < :to
   AND EXISTS (SELECT 1 FROM holdfast_stream AS s
                WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream AND s.first >= :to)
