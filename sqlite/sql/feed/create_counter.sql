-- Creates the counter row of a workspace's feed, if it does not exist. After a restore, the positions of a feed that the backup did not
-- have are a gap.
-- do
INSERT INTO holdfast_sequence (shard, workspace, last)
SELECT :shard, :workspace, coalesce((SELECT max(r.generation) FROM holdfast_restore AS r), 0) * 1048576
 WHERE true
ON CONFLICT (shard, workspace) DO NOTHING
-- also
INSERT INTO holdfast_feed_gap (shard, workspace, generation, last, next)
SELECT q.shard, q.workspace, q.last / 1048576, 0, q.last
  FROM holdfast_sequence AS q
 WHERE q.shard = :shard AND q.workspace = :workspace AND q.last > 0
