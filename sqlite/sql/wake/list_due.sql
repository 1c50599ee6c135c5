-- Returns which kinds of work are due, by their index in the list. Each kind is looked up
-- in the index of live rows.
-- Leases that expire soon are returned too, with the time that they have left.
-- Each capability has its kinds in has_work.sql: q.value is [kind, name], t.value the shard and t.key its index in the list. A kind
-- returns NULL, or the time until it is due, in ms.
SELECT w.need, min(w.wait)
  FROM (SELECT q.key AS need, CASE q.value ->> 0
           {all has_work}
           ELSE 0
           END AS wait
          FROM json_each(:needs) AS q CROSS JOIN json_each(:shards) AS t
         WHERE :shard IS NOT NULL AND :workspace IS NOT NULL) AS w
 WHERE w.wait IS NOT NULL
 GROUP BY w.need
