-- Counts the operations that are in a queue or leased from it, at most a thousand.
SELECT count(*)
  FROM (SELECT 1
          FROM holdfast_entity AS e
         WHERE e.shard = :shard AND e.workspace = :workspace AND e.phase <> 'free' AND e.queue = :queue
         LIMIT 1000) AS w
