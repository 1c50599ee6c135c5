-- Lists histories with events that a reaction does not know of, in the order of their
-- names.
SELECT h.stream, h.head
  FROM (SELECT x.shard, x.workspace, x.stream, pg_catalog.max(x.version) AS head
          FROM {schema}.history x
         WHERE x.shard = :shard AND x.workspace = :workspace AND x.stream > :after
           AND pg_catalog.left(x.stream, 6) NOT IN ('$void/', '$mark/')
         GROUP BY x.shard, x.workspace, x.stream) AS h
  LEFT JOIN LATERAL (
       SELECT f.due FROM {schema}.follow f
        WHERE f.shard = h.shard AND f.workspace = h.workspace AND f.reaction = :reaction AND f.stream = h.stream
        LIMIT 1) AS f ON true
 WHERE f.due IS NULL OR f.due < h.head
 ORDER BY h.stream
 LIMIT :limit
