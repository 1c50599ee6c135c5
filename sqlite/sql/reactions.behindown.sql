-- Histories of which there is more than a reaction knows of, in the order of
-- their names.
-- ?1 shard, ?2 workspace, ?3 reaction, ?4 after, ?5 limit
-- do
SELECT h.stream, h.head
  FROM (SELECT x.shard, x.workspace, x.stream, max(x.version) AS head
          FROM holdfast_history AS x
         WHERE x.shard = ?1 AND x.workspace = ?2 AND x.stream > ?4
           AND substr(x.stream, 1, 6) NOT IN ('$void/', '$mark/')
         GROUP BY x.shard, x.workspace, x.stream) AS h
  LEFT JOIN holdfast_follow AS f ON f.shard = h.shard AND f.workspace = h.workspace AND f.reaction = ?3 AND f.stream = h.stream
 WHERE f.due IS NULL OR f.due < h.head
 ORDER BY h.stream
 LIMIT +?5
