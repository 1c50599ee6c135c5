-- Deletes the positions of a reaction on streams that it no longer follows.
DELETE FROM holdfast_follow AS f
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = :reaction
   AND f.stream IN (SELECT q.value FROM json_each(:streams) AS q)
RETURNING 1
