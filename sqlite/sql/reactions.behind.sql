-- Streams on which there is more than a reaction knows of, in the order of their
-- names.
-- ?1 shard, ?2 workspace, ?3 reaction, ?4 after, ?5 limit
-- do
SELECT s.name, s.head
  FROM holdfast_stream AS s
  LEFT JOIN holdfast_follow AS f ON f.shard = s.shard AND f.workspace = s.workspace AND f.reaction = ?3 AND f.stream = s.name
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.name > ?4
   AND (f.due IS NULL OR f.due < s.head)
 ORDER BY s.name
 LIMIT +?5
