-- How many operations are in a queue or held from it, a thousand at the most.
-- ?1 shard, ?2 workspace, ?3 queue
-- do
SELECT count(*)
  FROM (SELECT 1
          FROM holdfast_entity AS e
         WHERE e.shard = ?1 AND e.workspace = ?2 AND e.phase <> 'free' AND e.queue = ?3
         LIMIT 1000) AS w
