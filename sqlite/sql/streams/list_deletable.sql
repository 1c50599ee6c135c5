-- Lists streams whose removed events can be deleted by now, because the youngest of them was written some time ago.
SELECT s.workspace, s.name, s.pruned, s.first
  FROM holdfast_stream AS s INDEXED BY holdfast_stream_unpruned
 WHERE s.shard = :shard AND (:workspace = '' OR s.workspace = :workspace)
   AND s.pruned < s.first
   AND NOT EXISTS (SELECT 1 FROM holdfast_event AS e
                    WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name
                      AND e.version = s.first - 1 AND e.at > {now} - :ago)
 ORDER BY s.workspace, s.name
 LIMIT :limit
