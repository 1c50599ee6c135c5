WHEN 'held stream' THEN (
     SELECT max(s.until - {now}, 0) FROM holdfast_stream AS s INDEXED BY holdfast_stream_held
      WHERE s.shard = t.value AND s.holder IS NOT NULL AND s.until <= {now} + :soon ORDER BY s.until LIMIT 1)
WHEN 'dropped events' THEN (
     SELECT 0 FROM holdfast_stream AS s INDEXED BY holdfast_stream_unpruned WHERE s.shard = t.value AND s.pruned < s.first LIMIT 1)
