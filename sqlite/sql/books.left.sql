-- Streams of which events are gone that can be deleted by now: the youngest of
-- them has been written some time ago. Until then an append whose answer was lost
-- may be asked for by its events.
-- ?1 shard, ?2 workspace ('' for all), ?3 how long ago, in ms, ?4 limit
-- do
SELECT s.workspace, s.name, s.pruned, s.first
  FROM holdfast_stream AS s INDEXED BY holdfast_stream_unpruned
 WHERE s.shard = ?1 AND (?2 = '' OR s.workspace = ?2)
   AND s.pruned < s.first
   AND NOT EXISTS (SELECT 1 FROM holdfast_event AS e
                    WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name
                      AND e.version = s.first - 1 AND e.at > {now} - ?3)
 ORDER BY s.workspace, s.name
 LIMIT +?4
