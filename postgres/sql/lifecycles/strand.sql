-- How many entities of a lifecycle a config has no place for, by status, and whether operations on them are under way. Of
-- those that are free: in a status that goes, or becomes a claim status, or is one no longer. Of those with an operation: in a status
-- that goes, or on the way to one that goes or becomes a claim status, or without a plan, so that the way is not known.
-- :flipped statuses that become claim statuses or cease to be, JSON lists
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
