-- Of which needs there is something due, by their places in the list. Each is looked
-- for by itself, in the index of what is live: over several at once, the planner
-- would read all that there is of a kind. The time is asked for once: it bounds an
-- index only as a value that stays.
-- Leases that have not expired are told too, with the time that they have left, where that is short.
-- :shards a JSON list; :needs a JSON list of [kind, name]
-- Each capability has its kinds in has_work.sql: q.item is [kind, name], t.shard the shard and t.k its place in the list, c.now and
-- c.soon the times. A kind answers NULL, or how long it waits, in ms.
SELECT q.n - 1, pg_catalog.min(w.wait)::bigint
  FROM pg_catalog.jsonb_array_elements(:needs::jsonb) WITH ORDINALITY AS q(item, n)
 CROSS JOIN pg_catalog.jsonb_array_elements_text(:shards::jsonb) WITH ORDINALITY AS t(shard, k)
 CROSS JOIN (SELECT n.now, n.now + :soon::float8 * interval '1 ms' AS soon FROM (SELECT {now} AS now) AS n) AS c
 CROSS JOIN LATERAL (SELECT CASE q.item ->> 0
       {all has_work}
       ELSE 0
       END AS wait OFFSET 0) AS w -- evaluated once
 WHERE :shard IS NOT NULL AND :workspace IS NOT NULL AND w.wait IS NOT NULL
 GROUP BY q.n
