-- Lists leases of operations, steps, items and deliveries that ended :patience ago or earlier and were not released.
SELECT x.kind || '/' || x.place, x.until, x.holder, 'epoch'::timestamptz, x.kind, x.a, x.b, x.c, x.error
  FROM (
        (SELECT 'operation' AS kind, e.operation AS place, e.until, e.holder, e.lifecycle AS a, e.id AS b, e.operation AS c, coalesce(pg_catalog.substr(e.error, 1, 500), '') AS error
           FROM {schema}.entity e
          WHERE e.shard + 0 = :shard AND (:workspace = '' OR e.workspace = :workspace) AND e.holder IS NOT NULL AND e.until <= (SELECT {now} - :patience::float8 * interval '1 ms')
          ORDER BY e.until
          LIMIT :limit)
        UNION ALL
        (SELECT 'step', s.run || '/' || s.name || '/' || s.visit::text, s.until, s.holder, s.run, s.name, s.visit::text, coalesce(pg_catalog.substr(s.error, 1, 500), '')
           FROM {schema}.step s
          WHERE s.shard = :shard AND (:workspace = '' OR s.workspace = :workspace) AND s.holder IS NOT NULL AND s.until <= (SELECT {now} - :patience::float8 * interval '1 ms')
          ORDER BY s.until
          LIMIT :limit)
        UNION ALL
        (SELECT 'delivery', f.reaction || '/' || f.stream, f.until, f.holder, f.reaction, f.stream, '', coalesce(pg_catalog.substr(f.error, 1, 500), '')
           FROM {schema}.follow f
          WHERE f.shard + 0 = :shard AND (:workspace = '' OR f.workspace = :workspace) AND f.holder IS NOT NULL AND f.until <= (SELECT {now} - :patience::float8 * interval '1 ms')
          ORDER BY f.until
          LIMIT :limit)
        UNION ALL
        (SELECT 'item', b.id || '/' || i.key, i.until, i.holder, b.id, i.key, '', coalesce(i.error, '')
           FROM {schema}.batch b
          CROSS JOIN LATERAL (
                SELECT i.key, i.until, i.holder, pg_catalog.substr(i.error, 1, 500) AS error FROM {schema}.item i
                 WHERE i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.holder IS NOT NULL AND i.until <= (SELECT {now} - :patience::float8 * interval '1 ms')
                 ORDER BY i.until
                 LIMIT :limit) AS i
          WHERE b.shard + 0 = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.running > 0
          ORDER BY i.until
          LIMIT :limit)) AS x
 ORDER BY x.until
 LIMIT :limit
