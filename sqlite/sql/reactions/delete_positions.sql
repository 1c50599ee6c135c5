-- Deletes one page of the rows of a removed reaction, and returns one row for
-- each.
DELETE FROM holdfast_follow AS f
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = :reaction
   AND f.stream IN (SELECT x.stream FROM holdfast_follow AS x
                     WHERE x.shard = :shard AND x.workspace = :workspace AND x.reaction = :reaction
                     ORDER BY x.stream
                     LIMIT :limit)
   AND EXISTS (SELECT 1 FROM holdfast_reaction AS r
                WHERE r.shard = :shard AND r.workspace = :workspace AND r.name = :reaction AND r.state = 'removed')
RETURNING 1
