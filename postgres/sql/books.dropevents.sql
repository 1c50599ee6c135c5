-- Deletes events of a stream that are below the first one kept. A function of the owner's does, because nobody else may.
-- $1 shard, $2 workspace, $3 stream, $4 from, $5 to a version, not included
SELECT {schema}.drop_events($1::smallint, $2::text, $3::text, $4::bigint, $5::bigint)
