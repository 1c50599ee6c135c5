-- Reactions that wait, or are removed but not gone, in all workspaces of a shard.
-- ?1 shard, ?2 workspace ('' for all), ?3 limit
-- do
SELECT r.workspace, r.name, r.state
  FROM holdfast_reaction AS r INDEXED BY holdfast_reaction_unfinished
 WHERE r.shard = ?1 AND (?2 = '' OR r.workspace = ?2) AND r.state <> 'live'
 ORDER BY r.workspace, r.name
 LIMIT +?3
