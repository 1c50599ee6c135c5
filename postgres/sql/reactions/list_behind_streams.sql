-- Lists streams with events that a reaction does not know of, in the order of their
-- names.
SELECT s.name, s.head
  FROM {schema}.stream s
  LEFT JOIN LATERAL (
       SELECT f.due FROM {schema}.follow f
        WHERE f.shard = s.shard AND f.workspace = s.workspace AND f.reaction = :reaction AND f.stream = s.name
        LIMIT 1) AS f ON true
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name > :after
   AND (f.due IS NULL OR f.due < s.head)
 ORDER BY s.name
 LIMIT :limit
