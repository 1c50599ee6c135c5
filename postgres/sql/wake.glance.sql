-- Of which needs there is something due, by their places in the list. Each is looked
-- for by itself, in the index of what is live: over several at once, the planner
-- would read all that there is of a kind. The time is asked for once: it bounds an
-- index only as a value that stays.
-- Leases that have not expired are told too, with the time that they have left, where that is short.
-- $1 shard, $2 workspace, neither looked at, $3 shards as a JSON list, $4 needs as a JSON list of [kind, name],
-- $5 how much time is short, in ms
SELECT q.n - 1, pg_catalog.min(w.wait)::bigint
  FROM pg_catalog.jsonb_array_elements($4::text::jsonb) WITH ORDINALITY AS q(item, n)
 CROSS JOIN pg_catalog.jsonb_array_elements_text($3::text::jsonb) WITH ORDINALITY AS t(shard, k)
 CROSS JOIN (SELECT n.now, n.now + $5::bigint::float8 * interval '1 ms' AS soon FROM (SELECT {now} AS now) AS n) AS c
 CROSS JOIN LATERAL (SELECT CASE q.item ->> 0
       WHEN 'reaction' THEN
            coalesce((SELECT 0 FROM {schema}.due d WHERE d.shard = t.shard::smallint AND d.reaction = q.item ->> 1 LIMIT 1),
                     (SELECT 0 FROM {schema}.follow f
                       WHERE f.shard = t.shard::smallint AND f.reaction = q.item ->> 1
                         AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.due_at <= c.now
                       ORDER BY f.workspace, f.crash_group DESC, f.rank LIMIT 1)) -- by the index that has this order
       WHEN 'operation' THEN
            (SELECT 0 FROM {schema}.entity e
              WHERE e.shard + 0 = t.shard::smallint AND coalesce(e.queue, 'l:' || e.lifecycle) = q.item ->> 1 AND e.phase = 'due' AND e.due_at <= c.now
              ORDER BY e.due_at LIMIT 1)
       WHEN 'step' THEN
            (SELECT 0 FROM {schema}.step s
              WHERE s.shard = t.shard::smallint AND s.handler = q.item ->> 1 AND s.due_at <= c.now
              ORDER BY s.due_at LIMIT 1)
       WHEN 'batch' THEN
            (SELECT 0 FROM {schema}.batch b
              WHERE b.shard + 0 = t.shard::smallint AND b.handler = q.item ->> 1 AND b.status NOT IN ('CANCELLED', 'COMPLETED')
                AND b.status IN ('PENDING', 'RUNNING') AND NOT b.cancel_requested AND b.running < b.parallel AND (b.next < b.items OR b.waiting > 0)
              LIMIT 1)
       WHEN 'keeping' THEN
            (SELECT 0 FROM {schema}.batch b WHERE b.shard = t.shard::smallint AND b.due_at <= c.now ORDER BY b.due_at LIMIT 1)
       WHEN 'cleaning' THEN
            (SELECT 0 FROM {schema}.item i WHERE i.shard = t.shard::smallint AND i.sweep_at <= c.now ORDER BY i.sweep_at LIMIT 1)
       WHEN 'held reaction' THEN
            (SELECT greatest(pg_catalog.ceil(extract(epoch FROM f.until - c.now) * 1000::numeric), 0) FROM {schema}.follow f WHERE f.shard + 0 = t.shard::smallint AND f.holder IS NOT NULL AND f.until <= c.soon ORDER BY f.until LIMIT 1)
       WHEN 'held stream' THEN
            (SELECT greatest(pg_catalog.ceil(extract(epoch FROM s.until - c.now) * 1000::numeric), 0) FROM {schema}.stream s WHERE s.shard = t.shard::smallint AND s.holder IS NOT NULL AND s.until <= c.soon ORDER BY s.until LIMIT 1)
       WHEN 'held operation' THEN
            (SELECT greatest(pg_catalog.ceil(extract(epoch FROM e.until - c.now) * 1000::numeric), 0) FROM {schema}.entity e WHERE e.shard + 0 = t.shard::smallint AND e.holder IS NOT NULL AND e.until <= c.soon ORDER BY e.until LIMIT 1)
       WHEN 'held step' THEN
            (SELECT greatest(pg_catalog.ceil(extract(epoch FROM s.until - c.now) * 1000::numeric), 0) FROM {schema}.step s WHERE s.shard = t.shard::smallint AND s.holder IS NOT NULL AND s.until <= c.soon ORDER BY s.until LIMIT 1)
       WHEN 'held item' THEN -- in the batches that have items in hand
            (SELECT greatest(pg_catalog.ceil(extract(epoch FROM x.until - c.now) * 1000::numeric), 0)
               FROM {schema}.batch b
              CROSS JOIN LATERAL (SELECT i.until FROM {schema}.item i
                                   WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.holder IS NOT NULL AND i.until <= c.soon
                                   ORDER BY i.until LIMIT 1) AS x
              WHERE b.shard + 0 = t.shard::smallint AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.running > 0
              ORDER BY x.until LIMIT 1)
       WHEN 'paused batch' THEN
            (SELECT 0 FROM {schema}.batch b WHERE b.shard + 0 = t.shard::smallint AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.status = 'PAUSED' LIMIT 1)
       WHEN 'unfinished reaction' THEN
            (SELECT 0 FROM {schema}.reaction r WHERE r.shard = t.shard::smallint AND r.state <> 'live' ORDER BY r.workspace, r.name LIMIT 1)
       WHEN 'dropped events' THEN
            (SELECT 0 FROM {schema}.stream s WHERE s.shard = t.shard::smallint AND s.pruned < s.first ORDER BY s.workspace, s.name LIMIT 1)
       WHEN 'old run' THEN
            (SELECT 0 FROM {schema}.run r WHERE r.shard = t.shard::smallint AND r.prune_at <= c.now ORDER BY r.prune_at LIMIT 1)
       WHEN 'scope' THEN -- [shard, workspace, kind, id, version], -1 for none; the shard is its own, known or not
            (SELECT CASE WHEN w.seen IS DISTINCT FROM coalesce((
                    SELECT s.version FROM {schema}.scope s
                     WHERE s.shard = w.shard AND s.workspace = w.workspace AND s.kind = w.kind AND s.id = w.id
                       AND s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > c.now)), -1) THEN 0 END
               FROM (SELECT (x.item ->> 0)::smallint AS shard, x.item ->> 1 AS workspace, x.item ->> 2 AS kind, x.item ->> 3 AS id, (x.item ->> 4)::bigint AS seen
                       FROM (SELECT (q.item ->> 1)::jsonb AS item) AS x) AS w
              WHERE t.k = 1)
       WHEN 'cancelled batch' THEN -- [shard, workspace, id]
            (SELECT 0 FROM {schema}.batch b JOIN (SELECT (q.item ->> 1)::jsonb AS item) AS x
                        ON b.shard = (x.item ->> 0)::smallint AND b.workspace = x.item ->> 1 AND b.id = x.item ->> 2
                     WHERE t.k = 1 AND b.cancel_requested)
       WHEN 'cancelled run' THEN
            (SELECT 0 FROM {schema}.run r JOIN (SELECT (q.item ->> 1)::jsonb AS item) AS x
                        ON r.shard = (x.item ->> 0)::smallint AND r.workspace = x.item ->> 1 AND r.id = x.item ->> 2
                     WHERE t.k = 1 AND r.cancel_requested)
       WHEN 'old scope' THEN
            (SELECT 0 FROM {schema}.scope s WHERE s.shard = t.shard::smallint AND s.expires_at <= c.now ORDER BY s.expires_at LIMIT 1)
       WHEN 'old request' THEN
            (SELECT 0 FROM {schema}.request r WHERE r.shard + 0 = t.shard::smallint AND r.expires_at <= c.now ORDER BY r.expires_at LIMIT 1)
       WHEN 'old token' THEN
            (SELECT 0 FROM {schema}.token k WHERE k.shard + 0 = t.shard::smallint AND k.expires_at < c.now ORDER BY k.expires_at LIMIT 1)
       WHEN 'old attempt' THEN
            (SELECT 0 FROM {schema}.attempt a WHERE a.shard = t.shard::smallint AND a.at < c.now - (q.item ->> 1)::bigint::float8 * interval '1 ms' ORDER BY a.at LIMIT 1)
       ELSE 0
       END AS wait OFFSET 0) AS w -- evaluated once
 WHERE $1::smallint IS NOT NULL AND $2::text IS NOT NULL AND w.wait IS NOT NULL
 GROUP BY q.n
