-- Lists histories with events that a reaction does not know of, in the order of their names.
SELECT h.stream, h.head
  FROM (SELECT x.shard, x.workspace, x.stream, max(x.version) AS head
          FROM holdfast_history AS x
         WHERE x.shard = :shard AND x.workspace = :workspace AND x.stream > :after
           AND substr(x.stream, 1, 6) NOT IN ('$void/', '$mark/')
         GROUP BY x.shard, x.workspace, x.stream) AS h
  LEFT JOIN holdfast_follow AS f ON f.shard = h.shard AND f.workspace = h.workspace AND f.reaction = :reaction AND f.stream = h.stream
 WHERE f.due IS NULL OR f.due < h.head
 ORDER BY h.stream
 LIMIT :limit
