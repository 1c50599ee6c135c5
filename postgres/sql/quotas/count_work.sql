-- Counts the open work of a workspace: operations in progress, runs that have neither ended nor failed, and items of batches that have not ended, of which
-- each batch counts as one at least. Operations, runs and batches count up to :limit each, in the indexes of what has not ended; a batch knows the numbers of its
-- items.
SELECT (SELECT pg_catalog.count(*)
          FROM (SELECT 1 FROM {schema}.entity e WHERE e.shard + 0 = :shard AND e.workspace = :workspace AND e.phase <> 'free' LIMIT :limit) AS o)
     + (SELECT pg_catalog.count(*)
          FROM (SELECT 1 FROM {schema}.run r
                 WHERE r.shard = :shard AND r.workspace = :workspace AND r.status NOT IN ('COMPLETED', 'CANCELLED') AND r.status IN ('PAUSED', 'PENDING', 'RUNNING', 'WAITING')
                 LIMIT :limit) AS r)
     + (SELECT coalesce(pg_catalog.sum(b.open), 0)::bigint
          FROM (SELECT greatest(1, b.items - b.succeeded - b.failed - b.cancelled) AS open
                  FROM {schema}.batch b
                 WHERE 0 + b.shard = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED')
                 LIMIT :limit) AS b)
