-- The first event of a stream, which must not exist. Arguments as for an append.
WITH head AS (
    INSERT INTO {schema}.stream (shard, workspace, name, head)
    SELECT $1::smallint, $2::text, $4::text, 0 WHERE $5::bigint = -1
    ON CONFLICT (shard, workspace, name) DO NOTHING
    RETURNING head
), written AS (
    INSERT INTO {schema}.event (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, $3::uuid, 0, $2, $4, head, $6::text, $7::text::json, clock_timestamp() FROM head
)
SELECT head FROM head
