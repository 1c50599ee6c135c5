-- Lists tasks whose last hand-out was lost and that wait for another one or are handed out again, in the order of
-- their place, after a given one.
SELECT x.place, x.kind, x.a, x.b, x.c, x.handler, x.held, x.epoch, x.lost, x.error, x.at
  FROM (SELECT 'action/' || e.operation AS place, 'action' AS kind, e.lifecycle AS a, e.id AS b, e.operation AS c,
               pg_catalog.substr(coalesce(e.queue, ''), pg_catalog.length('h:' || e.workspace || ':') + 1) AS handler, e.holder IS NOT NULL AS held, e.epoch, e.lost,
               coalesce(e.error, '') AS error, e.updated_at AS at
          FROM {schema}.entity e
         WHERE 0 + e.shard = :shard AND e.workspace = :workspace AND e.lost > 0 AND e.phase IN ('held', 'due')
        UNION ALL
        SELECT 'runStep/' || s.run || '/' || s.name || '/' || s.visit::text, 'runStep', s.run, s.name, s.visit::text, s.handler, s.holder IS NOT NULL, s.epoch, s.lost,
               coalesce(s.error, ''), coalesce(s.taken_at, 'epoch')
          FROM {schema}.step s
         WHERE s.shard + 0 = :shard AND s.workspace = :workspace AND s.lost > 0 AND s.status IN ('PENDING', 'RUNNING', 'WAITING') AND NOT s.uncertain
        UNION ALL
        SELECT 'batchItem/' || i.batch || '/' || i.key, 'batchItem', i.batch, i.key, '', b.handler, i.holder IS NOT NULL, i.epoch, i.lost, coalesce(i.error, ''), i.updated_at
          FROM {schema}.item i
         CROSS JOIN LATERAL (SELECT b.handler FROM {schema}.batch b WHERE b.shard = i.shard AND b.workspace = i.workspace AND b.id = i.batch LIMIT 1) AS b
         WHERE i.shard + 0 = :shard AND i.workspace = :workspace AND i.lost > 0 AND i.state IN ('waiting', 'running')
        UNION ALL
        SELECT 'reaction/' || f.reaction || '/' || f.stream, 'reaction', f.reaction, f.stream, '', coalesce(r.options ->> 'handler'::text, ''), f.holder IS NOT NULL, f.epoch, f.lost,
               coalesce(f.error, ''), f.updated_at
          FROM {schema}.follow f
         CROSS JOIN LATERAL (SELECT r.options FROM {schema}.reaction r WHERE r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction LIMIT 1) AS r
         WHERE f.shard + 0 = :shard AND f.workspace = :workspace AND f.lost > 0 AND NOT f.blocked) AS x
 WHERE x.place COLLATE "C" > :after
 ORDER BY x.place COLLATE "C"
 LIMIT :limit
