-- Lists tasks whose last hand-out was lost and that wait for another one or are handed out again, in the order of
-- their place, after a given one.
SELECT x.place, x.kind, x.a, x.b, x.c, x.handler, x.held, x.epoch, x.lost, x.error, x.at
  FROM (SELECT 'action/' || e.operation AS place, 'action' AS kind, e.lifecycle AS a, e.id AS b, e.operation AS c,
               substr(coalesce(e.queue, ''), length('h:' || e.workspace || ':') + 1) AS handler, e.holder IS NOT NULL AS held, e.epoch, e.lost,
               coalesce(e.error, '') AS error, e.updated_at AS at
          FROM holdfast_entity AS e INDEXED BY holdfast_entity_lost
         WHERE e.shard = :shard AND e.workspace = :workspace AND e.lost > 0 AND e.phase IN ('held', 'due')
        UNION ALL
        SELECT 'runStep/' || s.run || '/' || s.name || '/' || s.visit, 'runStep', s.run, s.name, CAST(s.visit AS TEXT), s.handler, s.holder IS NOT NULL, s.epoch, s.lost,
               coalesce(s.error, ''), coalesce(s.taken_at, 0)
          FROM holdfast_step AS s INDEXED BY holdfast_step_lost
         WHERE s.shard = :shard AND s.workspace = :workspace AND s.lost > 0 AND s.status IN ('PENDING', 'RUNNING', 'WAITING') AND NOT s.uncertain
        UNION ALL
        SELECT 'batchItem/' || i.batch || '/' || i.key, 'batchItem', i.batch, i.key, '', b.handler, i.holder IS NOT NULL, i.epoch, i.lost, coalesce(i.error, ''), i.updated_at
          FROM holdfast_item AS i INDEXED BY holdfast_item_lost JOIN holdfast_batch AS b ON b.shard = i.shard AND b.workspace = i.workspace AND b.id = i.batch
         WHERE i.shard = :shard AND i.workspace = :workspace AND i.lost > 0 AND i.state IN ('waiting', 'running')
        UNION ALL
        SELECT 'reaction/' || f.reaction || '/' || f.stream, 'reaction', f.reaction, f.stream, '', coalesce(r.options ->> 'handler', ''), f.holder IS NOT NULL, f.epoch, f.lost,
               coalesce(f.error, ''), f.updated_at
          FROM holdfast_follow AS f INDEXED BY holdfast_follow_lost JOIN holdfast_reaction AS r ON r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction
         WHERE f.shard = :shard AND f.workspace = :workspace AND f.lost > 0 AND NOT f.blocked) AS x
 WHERE x.place > :after
 ORDER BY x.place
 LIMIT :limit
