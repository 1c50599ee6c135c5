WHEN 'reaction' THEN
     coalesce((SELECT 0 FROM {schema}.due d WHERE d.shard = t.shard::smallint AND d.reaction = q.item ->> 1 LIMIT 1),
              (WITH RECURSIVE a AS ( -- from one workspace to the next, regardless of how many streams wait for a retry
                   SELECT t.shard::smallint AS shard, q.item ->> 1 AS reaction, '' COLLATE pg_catalog."C" AS workspace, c.now
                   UNION ALL
                   SELECT a.shard, a.reaction, (SELECT f.workspace FROM {schema}.follow f
                                                 WHERE f.shard = a.shard AND f.reaction = a.reaction AND f.workspace > a.workspace
                                                   AND f.holder IS NULL AND NOT f.blocked AND f.due > f.watermark
                                                 ORDER BY f.workspace LIMIT 1), a.now
                     FROM a
                    WHERE a.workspace IS NOT NULL
               )
               SELECT 0 FROM a
                WHERE a.workspace <> ''
                  AND {include reactions/is_due}
                LIMIT 1))
WHEN 'held reaction' THEN
     (SELECT {include wake/time_left f}
       FROM {schema}.follow f
      WHERE f.shard + 0 = t.shard::smallint AND f.holder IS NOT NULL AND f.until <= c.soon ORDER BY f.until LIMIT 1)
WHEN 'unfinished reaction' THEN
     (SELECT 0 FROM {schema}.reaction r WHERE r.shard = t.shard::smallint AND r.state <> 'live' ORDER BY r.workspace, r.name LIMIT 1)
