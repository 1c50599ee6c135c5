-- Forgets where a reaction stands on streams that it does not follow any more.
DELETE FROM holdfast_follow AS f
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = :reaction
   AND f.stream IN (SELECT q.value FROM json_each(:streams) AS q)
RETURNING 1
