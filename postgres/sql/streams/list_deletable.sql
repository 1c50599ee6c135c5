-- Lists streams whose removed events can be deleted by now, because the youngest of them
-- was written some time ago. Until then an append whose response was lost can be recovered
-- from its events.
SELECT s.workspace, s.name, s.pruned, s.first
  FROM {schema}.stream s
 WHERE s.shard = :shard AND (:workspace = '' OR s.workspace = :workspace)
   AND s.pruned < s.first
   AND NOT coalesce((SELECT e.version = s.first - 1 AND e.at > {now} - :ago::float8 * interval '1 ms'
                       FROM {schema}.event e
                      WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name AND e.version >= s.first - 1
                      ORDER BY e.version -- uses the index with this order
                      LIMIT 1), false)
 ORDER BY s.workspace, s.name
 LIMIT :limit
