-- The statement that numbers moves the watermarks too, so there is nothing to do.
-- $1 shard, $2 workspace, $3 limit of streams
SELECT 1 WHERE $1::smallint IS NULL AND $2::text IS NULL AND $3::bigint IS NULL
