-- Returns which kinds of work are due, by their index in the list. Each kind is looked up
-- separately, in the index of live rows: over several kinds at once, the planner would read
-- all rows of a kind. The time is read once: only a stable value can bound an index scan.
-- Leases that expire soon are returned too, with the time that they have left.
-- :shards a JSON list; :needs a JSON list of [kind, name]
-- Each capability has its kinds in has_work.sql: q.item is [kind, name], t.shard the shard and t.k its index in the list, c.now and
-- c.soon the times. A kind returns NULL, or the time until it is due, in ms.
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
