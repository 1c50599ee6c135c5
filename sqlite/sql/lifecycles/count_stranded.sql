-- Counts the entities of a lifecycle that a config would strand, by status, and whether operations on them are in flight.
SELECT s.place, s.open, count(*)
  FROM (SELECT e.phase <> 'free' AS open,
               CASE WHEN e.side = 0 AND (e.status NOT IN (SELECT x.value FROM json_each(:statuses) AS x)
                                         OR (e.phase = 'free' AND e.status IN (SELECT x.value FROM json_each(:flipped) AS x))) THEN e.status
                    WHEN e.phase = 'free' THEN NULL
                    WHEN e.plan ->> 'operation' = e.operation
                    THEN (SELECT p.value FROM json_each(json_array(e.revert, e.plan ->> 'success', e.plan ->> 'failed')) AS p
                           WHERE p.value NOT IN (SELECT x.value FROM json_each(:statuses) AS x) OR p.value IN (SELECT x.value FROM json_each(:claims) AS x)
                           LIMIT 1)
                    ELSE e.status END AS place
          FROM holdfast_entity AS e
         WHERE e.shard = :shard AND e.workspace = :workspace AND e.lifecycle = :lifecycle) AS s
 WHERE s.place IS NOT NULL
 GROUP BY 1, 2
 ORDER BY 1, 2
