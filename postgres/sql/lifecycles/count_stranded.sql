-- Counts the entities of a lifecycle that a config would strand, by status, and whether operations on them are in flight. Of
-- free entities: those in a status that is dropped, or becomes or ceases to be a claim status. Of entities with an operation: those in a
-- status that is dropped, those on the way to a status that is dropped or becomes a claim status, and those without a plan, whose
-- target is unknown.
-- :flipped statuses that become or cease to be claim statuses, JSON lists
SELECT s.place, s.open, pg_catalog.count(*)
  FROM (SELECT e.phase <> 'free' AS open,
               CASE WHEN NOT e.side AND (NOT :statuses::jsonb ? e.status OR (e.phase = 'free' AND :flipped::jsonb ? e.status)) THEN e.status
                    WHEN e.phase = 'free' THEN NULL
                    WHEN e.plan ->> 'operation'::text = e.operation
                    THEN (SELECT p.status FROM pg_catalog.unnest(ARRAY[e.revert, e.plan ->> 'success'::text, e.plan ->> 'failed'::text]) AS p(status)
                           WHERE NOT :statuses::jsonb ? p.status OR :claims::jsonb ? p.status
                           LIMIT 1)
                    ELSE e.status END AS place
          FROM {schema}.entity e
         WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle) AS s
 WHERE s.place IS NOT NULL
 GROUP BY 1, 2
 ORDER BY 1, 2
