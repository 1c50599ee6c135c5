-- Lists streams with events that a reaction does not know of, in the order of their names.
SELECT s.name, s.head
  FROM holdfast_stream AS s
  LEFT JOIN holdfast_follow AS f ON f.shard = s.shard AND f.workspace = s.workspace AND f.reaction = :reaction AND f.stream = s.name
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name > :after
   AND (f.due IS NULL OR f.due < s.head)
 ORDER BY s.name
 LIMIT :limit
