-- Lists leases of operations, steps, items and deliveries that ended :patience ago or earlier and were not released.
SELECT x.kind || '/' || x.place, x.until, x.holder, 0, x.kind, x.a, x.b, x.c, x.error
  FROM (
        SELECT * FROM (SELECT 'operation' AS kind, e.operation AS place, e.until, e.holder, e.lifecycle AS a, e.id AS b, e.operation AS c, coalesce(substr(e.error, 1, 500), '') AS error
           FROM holdfast_entity AS e INDEXED BY holdfast_entity_held
          WHERE e.shard = :shard AND e.workspace = :workspace AND e.holder IS NOT NULL AND e.until <= {now} - :patience
          ORDER BY e.until
          LIMIT :limit)
        UNION ALL
        SELECT * FROM (SELECT 'step', s.run || '/' || s.name || '/' || s.visit, s.until, s.holder, s.run, s.name, CAST(s.visit AS TEXT), coalesce(substr(s.error, 1, 500), '')
           FROM holdfast_step AS s INDEXED BY holdfast_step_held
          WHERE s.shard = :shard AND s.workspace = :workspace AND s.holder IS NOT NULL AND s.until <= {now} - :patience
          ORDER BY s.until
          LIMIT :limit)
        UNION ALL
        SELECT * FROM (SELECT 'delivery', f.reaction || '/' || f.stream, f.until, f.holder, f.reaction, f.stream, '', coalesce(substr(f.error, 1, 500), '')
           FROM holdfast_follow AS f INDEXED BY holdfast_follow_held
          WHERE f.shard = :shard AND f.workspace = :workspace AND f.holder IS NOT NULL AND f.until <= {now} - :patience
          ORDER BY f.until
          LIMIT :limit)
        UNION ALL
        SELECT * FROM (SELECT 'item', b.id || '/' || i.key, i.until, i.holder, b.id, i.key, '', coalesce(substr(i.error, 1, 500), '')
           FROM holdfast_batch AS b INDEXED BY holdfast_batch_live
          CROSS JOIN holdfast_item AS i INDEXED BY holdfast_item_held ON i.shard = b.shard AND i.workspace = b.workspace AND i.batch = b.id AND i.holder IS NOT NULL AND i.until <= {now} - :patience
          WHERE b.shard = :shard AND b.workspace = :workspace AND b.status NOT IN ('CANCELLED', 'COMPLETED') AND b.running > 0
          ORDER BY i.until
          LIMIT :limit)) AS x
 ORDER BY x.until
 LIMIT :limit
