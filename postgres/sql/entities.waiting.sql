-- How many operations are in a queue or held from it, a thousand at the most.
-- $1 shard, $2 workspace, $3 queue
SELECT pg_catalog.count(*)
  FROM (SELECT 1
          FROM {schema}.entity e
         WHERE e.shard + 0 = $1::smallint AND e.workspace = $2::text AND e.phase <> 'free' AND e.queue = $3::text
         LIMIT 1000) AS w
