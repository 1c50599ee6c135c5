-- Deletes a removed reaction that has no rows left.
DELETE FROM holdfast_reaction AS r
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.name = :reaction AND r.state = 'removed' AND :awaited IS NOT NULL
   AND NOT EXISTS (SELECT 1 FROM holdfast_follow AS f WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = :reaction)
RETURNING 1
