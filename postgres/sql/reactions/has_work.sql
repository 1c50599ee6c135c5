WHEN 'reaction' THEN
     coalesce((SELECT 0 FROM {schema}.due d WHERE d.shard = t.shard::smallint AND d.reaction = q.item ->> 1 LIMIT 1),
              (SELECT 0 FROM {schema}.follow f
                WHERE f.shard = t.shard::smallint AND f.reaction = q.item ->> 1
                  AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark AND f.due_at <= c.now
                ORDER BY f.workspace, f.crash_group DESC, f.rank LIMIT 1)) -- uses the index with this order
WHEN 'held reaction' THEN
     (SELECT {include wake/time_left f}
       FROM {schema}.follow f
      WHERE f.shard + 0 = t.shard::smallint AND f.holder IS NOT NULL AND f.until <= c.soon ORDER BY f.until LIMIT 1)
WHEN 'unfinished reaction' THEN
     (SELECT 0 FROM {schema}.reaction r WHERE r.shard = t.shard::smallint AND r.state <> 'live' ORDER BY r.workspace, r.name LIMIT 1)
