-- Of which needs there is something due, by their places in the list. Each is looked
-- for in the index of what is live.
-- Leases that have not expired are told too, with the time that they have left, where that is short.
-- Each capability has its kinds in has_work.sql: q.value is [kind, name], t.value the shard and t.key its place in the list. A kind
-- answers NULL, or how long it waits, in ms.
SELECT w.need, min(w.wait)
  FROM (SELECT q.key AS need, CASE q.value ->> 0
           {all has_work}
           ELSE 0
           END AS wait
          FROM json_each(:needs) AS q CROSS JOIN json_each(:shards) AS t
         WHERE :shard IS NOT NULL AND :workspace IS NOT NULL) AS w
 WHERE w.wait IS NOT NULL
 GROUP BY w.need
