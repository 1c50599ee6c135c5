-- Definitions of a workspace, by their ids: one, or those behind one.
-- ?1 shard, ?2 workspace, ?3 one ('' for all), ?4 behind, ?5 limit
-- do
SELECT d.id, d.body, d.created_at
  FROM holdfast_definition AS d
 WHERE d.shard = ?1 AND d.workspace = ?2 AND (?3 = '' OR d.id = ?3) AND d.id > ?4
 ORDER BY d.id
 LIMIT ?5
