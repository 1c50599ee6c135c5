-- A workspace in which a lifecycle of a name was brought by a program, or by the door.
-- ?1 shard, ?2 workspace ('' for all), ?3 lifecycle, ?4 origin
-- do
SELECT l.workspace
  FROM holdfast_lifecycle AS l
 WHERE l.shard = ?1 AND (?2 = '' OR l.workspace = ?2) AND l.name = ?3 AND l.origin = ?4
 LIMIT 1
