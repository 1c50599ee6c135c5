-- Streams of which events are gone that can be deleted by now: the youngest of
-- them has been written some time ago. Until then an append whose answer was lost
-- may be asked for by its events.
-- $1 shard, $2 workspace ('' for all), $3 how long ago, in ms, $4 limit
SELECT s.workspace, s.name, s.pruned, s.first
  FROM {schema}.stream s
 WHERE s.shard = $1::smallint AND ($2::text = '' OR s.workspace = $2::text)
   AND s.pruned < s.first
   AND NOT coalesce((SELECT e.version = s.first - 1 AND e.at > {now} - $3::bigint::float8 * interval '1 ms'
                       FROM {schema}.event e
                      WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name AND e.version >= s.first - 1
                      ORDER BY e.version -- by the index that has this order
                      LIMIT 1), false)
 ORDER BY s.workspace, s.name
 LIMIT $4::bigint
