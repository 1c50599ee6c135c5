-- Reads the feed behind a position. Each row tells where the feed stands, and
-- there is one also where there is nothing to read; the count and what it counts
-- are of one snapshot. What is below the first version kept is gone, also where it
-- is not yet deleted.
-- ?1 shard, ?2 workspace, ?3 after, ?4 limit
-- do
SELECT q.last, coalesce(p.position, 0), coalesce(p.stream, ''), coalesce(p.version, -1), coalesce(p.name, ''), coalesce(p.data, 'null'),
       coalesce(p.correlation, ''), coalesce(p.causation, ''), coalesce(p.actor, ''), coalesce(p.at, 0), coalesce(p.subject, '')
  FROM (SELECT coalesce((SELECT x.last FROM holdfast_sequence AS x WHERE x.shard = ?1 AND x.workspace = ?2), 0) AS last) AS q
  LEFT JOIN (
       SELECT f.position, f.stream, f.version, e.name, e.data, e.correlation, e.causation, e.actor, e.at, e.subject
         FROM holdfast_feed AS f
        CROSS JOIN holdfast_event AS e
           ON e.shard = ?1 AND e.workspace = ?2 AND e.stream = f.stream AND e.version = f.version
        WHERE f.shard = ?1 AND f.workspace = ?2 AND f.position > ?3
          AND e.version >= (SELECT s.first FROM holdfast_stream AS s WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name = f.stream)
        ORDER BY f.position
        LIMIT +?4) AS p ON true
 ORDER BY p.position
