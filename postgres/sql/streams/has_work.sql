WHEN 'held stream' THEN
     (SELECT {include wake/time_left s}
       FROM {schema}.stream s
      WHERE s.shard = t.shard::smallint AND s.holder IS NOT NULL AND s.until <= c.soon ORDER BY s.until LIMIT 1)
WHEN 'dropped events' THEN
     (SELECT 0 FROM {schema}.stream s WHERE s.shard = t.shard::smallint AND s.pruned < s.first ORDER BY s.workspace, s.name LIMIT 1)
