-- How many operations are in a queue or held from it, a thousand at the most.
SELECT pg_catalog.count(*)
  FROM (SELECT 1
          FROM {schema}.entity e
         WHERE e.shard + 0 = :shard AND e.workspace = :workspace AND e.phase <> 'free' AND e.queue = :queue
         LIMIT 1000) AS w
