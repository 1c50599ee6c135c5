-- Streams of which events are gone that can be deleted by now: the youngest of
-- them has been written some time ago. Until then an append whose answer was lost
-- may be asked for by its events.
SELECT s.workspace, s.name, s.pruned, s.first
  FROM {schema}.stream s
 WHERE s.shard = :shard AND (:workspace = '' OR s.workspace = :workspace)
   AND s.pruned < s.first
   AND NOT coalesce((SELECT e.version = s.first - 1 AND e.at > {now} - :ago::float8 * interval '1 ms'
                       FROM {schema}.event e
                      WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name AND e.version >= s.first - 1
                      ORDER BY e.version -- by the index that has this order
                      LIMIT 1), false)
 ORDER BY s.workspace, s.name
 LIMIT :limit
