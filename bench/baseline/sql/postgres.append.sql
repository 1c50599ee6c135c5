-- $1 shard, $2 workspace, $3 id of the event, $4 stream, $5 expected version,
-- $6 name, $7 data
WITH head AS (
    UPDATE {schema}.stream SET head = head + 1
     WHERE shard = $1::smallint AND workspace = $2::text AND name = $4::text AND head = $5::bigint
    RETURNING head
), written AS (
    INSERT INTO {schema}.event (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, $3::uuid, 0, $2, $4, head, $6::text, $7::text::json, clock_timestamp() FROM head
)
SELECT head FROM head
