-- Counts the operations that are in a queue or leased from it, at most a thousand.
SELECT pg_catalog.count(*)
  FROM (SELECT 1
          FROM {schema}.entity e
         WHERE e.shard + 0 = :shard AND e.workspace = :workspace AND e.phase <> 'free' AND e.queue = :queue
         LIMIT 1000) AS w
