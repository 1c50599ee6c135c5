-- Reads the next events of several streams, filtered by name.
WITH q AS MATERIALIZED (
    SELECT j.key AS nth, j.value ->> 0 AS workspace, j.value ->> 1 AS stream, j.value ->> 2 AS after, j.value ->> 3 AS upto,
           j.value -> 4 AS names, j.value ->> 4 IS NULL AS every
      FROM json_each(:streams) AS j
     WHERE :workspace IS NOT NULL
)
SELECT q.nth, x.id, x.version, x.name, x.data, coalesce(x.correlation, ''), coalesce(x.causation, ''), coalesce(x.actor, ''),
       x.at, ''
  FROM q CROSS JOIN holdfast_history AS x
 WHERE x.shard = :shard AND x.workspace = q.workspace AND x.stream = q.stream AND x.version > q.after
   AND x.version <= (SELECT coalesce(max(y.version), -1) FROM (
           SELECT z.version FROM holdfast_history AS z
            WHERE z.shard = :shard AND z.workspace = q.workspace AND z.stream = q.stream AND z.version > q.after AND z.version <= q.upto
              AND (q.every OR z.name IN (SELECT w.value FROM json_each(q.names) AS w))
            ORDER BY z.version
            LIMIT :limit) AS y)
   AND (q.every OR x.name IN (SELECT w.value FROM json_each(q.names) AS w))
 ORDER BY q.nth, x.version
