-- Creates the counter row of a workspace's feed, if it does not exist. After a restore, the positions of a feed that the backup did not
-- have are a gap.
WITH made AS (
    INSERT INTO {schema}.sequence AS q (shard, workspace, last)
    SELECT :shard, :workspace, coalesce((SELECT pg_catalog.max(r.generation) FROM {schema}.restore r), 0) * 1048576
    ON CONFLICT (shard, workspace) DO NOTHING
    RETURNING q.shard, q.workspace, q.last
)
INSERT INTO {schema}.feed_gap (shard, workspace, generation, last, next)
SELECT made.shard, made.workspace, made.last / 1048576, 0, made.last FROM made WHERE made.last > 0
