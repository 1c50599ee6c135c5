-- The shard of a workspace that has one.
-- $2 workspace
SELECT w.shard FROM {schema}.workspace w WHERE w.name = $2 AND $1::smallint IS NOT NULL
