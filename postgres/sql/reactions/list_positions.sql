-- Lists the positions of reactions, in the order of their names and streams. The head is
-- that of the stream, or of the history.
-- :reaction ('' for all); :last is for SQLite; :blocked whether only the blocked (1) or the others (0), NULL for all;
-- :failing (1) only those whose next event has failed and that are not blocked
SELECT f.reaction, r.source, f.stream, f.watermark, f.due,
       CASE WHEN r.source = 'event'
            THEN coalesce((SELECT s.head FROM {schema}.stream s WHERE s.shard = f.shard AND s.workspace = f.workspace AND s.name = f.stream), -1)
            ELSE coalesce((SELECT pg_catalog.max(h.version) FROM {schema}.history h WHERE h.shard = f.shard AND h.workspace = f.workspace AND h.stream = f.stream), -1) END,
       f.failures, f.deaths, f.lost, f.blocked, coalesce(f.error, ''), coalesce(f.holder, ''), coalesce(f.until, 'epoch'), f.due_at,
       coalesce(f.failing, -1), f.epoch, f.generation,
       CASE WHEN f.delivered_epoch = f.epoch THEN f.delivered ELSE -1 END, coalesce(f.until > {now}, false), f.reset_requested
  FROM {schema}.reaction r
 CROSS JOIN LATERAL (
       (SELECT f.* FROM {schema}.follow f
         WHERE f.shard = r.shard AND f.workspace = r.workspace AND f.reaction = r.name AND f.blocked AND :blocked = 1
           AND f.stream > CASE WHEN r.name = :after_reaction THEN :after_stream ELSE '' END
         ORDER BY f.stream
         LIMIT :limit)
       UNION ALL
       (SELECT f.* FROM {schema}.follow f
         WHERE f.shard = r.shard AND f.workspace = r.workspace AND f.reaction = r.name AND f.failing IS NOT NULL AND :failing = 1 AND NOT f.blocked
           AND f.stream > CASE WHEN r.name = :after_reaction THEN :after_stream ELSE '' END
         ORDER BY f.stream
         LIMIT :limit)
       UNION ALL
       (SELECT f.* FROM {schema}.follow f
         WHERE f.shard = r.shard AND f.workspace = r.workspace AND f.reaction = r.name AND coalesce(:blocked, 0) + :failing = 0 AND (:blocked IS NULL OR NOT f.blocked)
           AND f.stream > CASE WHEN r.name = :after_reaction THEN :after_stream ELSE '' END
         ORDER BY f.stream
         LIMIT :limit)) AS f
 WHERE r.shard = :shard AND r.workspace = :workspace AND (:reaction = '' OR r.name = :reaction) AND :last IS NOT NULL AND r.name >= :after_reaction AND r.state <> 'removed'
 ORDER BY f.reaction, f.stream
 LIMIT :limit
