-- Counts the open work of a workspace, in the indexes of what has not ended.
SELECT (SELECT count(*)
          FROM (SELECT 1 FROM holdfast_entity AS e INDEXED BY holdfast_entity_open WHERE e.shard = :shard AND e.workspace = :workspace AND e.phase <> 'free' LIMIT :limit) AS o)
     + (SELECT count(*)
          FROM (SELECT 1 FROM holdfast_run AS r INDEXED BY holdfast_run_live
                 WHERE r.shard = :shard AND r.workspace = :workspace AND r.status NOT IN ('COMPLETED', 'CANCELLED') AND r.status IN ('PAUSED', 'PENDING', 'RUNNING', 'WAITING')
                 LIMIT :limit) AS r)
     + (SELECT coalesce(sum(b.open), 0)
          FROM (SELECT max(1, b.items - b.succeeded - b.failed - b.cancelled) AS open
                  FROM holdfast_batch AS b INDEXED BY holdfast_batch_open
                 WHERE b.shard = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED')
                 LIMIT :limit) AS b)
