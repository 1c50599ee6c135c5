-- How many operations are in a queue or held from it, a thousand at the most.
SELECT count(*)
  FROM (SELECT 1
          FROM holdfast_entity AS e
         WHERE e.shard = :shard AND e.workspace = :workspace AND e.phase <> 'free' AND e.queue = :queue
         LIMIT 1000) AS w
