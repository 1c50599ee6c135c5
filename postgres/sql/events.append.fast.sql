-- Appends events to one stream that exists, if its head is where the caller
-- expects it; otherwise it does nothing and returns nothing.
-- $4 stream, $5 want (NULL any), $6 number of events; events: $7 n, $8 name,
-- $9 data, $10 correlation, $11 causation, $12 actor
WITH moved AS (
    UPDATE {schema}.stream s
       SET head = s.head + $6::bigint
     WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.name = $4::text
       AND ($5::bigint IS NULL OR s.head = $5)
    RETURNING s.head, {now} AS at -- after the lock
), written AS (
    INSERT INTO {schema}.event
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT $1, $3::uuid, c.n, $2, $4, moved.head - $6 + 1 + c.n,
           c.name, c.data::json, c.correlation, c.causation, c.actor, moved.at
      FROM moved, unnest($7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[])
                    AS c(n, name, data, correlation, causation, actor)
)
SELECT moved.head FROM moved
