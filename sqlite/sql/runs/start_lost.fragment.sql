-- Returns the run that has the key.

-- else
SELECT coalesce(r.id, ''), 0, 0, {now}
  FROM (SELECT 1) LEFT JOIN holdfast_run AS r ON r.shard = :shard AND r.workspace = :workspace AND r.key = :key
