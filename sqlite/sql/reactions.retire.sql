-- Forgets where a reaction stands on streams that it does not follow any more.
-- ?1 shard, ?2 workspace, ?3 reaction, ?4 streams as a JSON list
-- do
DELETE FROM holdfast_follow AS f
 WHERE f.shard = ?1 AND f.workspace = ?2 AND f.reaction = ?3
   AND f.stream IN (SELECT q.value FROM json_each(?4) AS q)
RETURNING 1
