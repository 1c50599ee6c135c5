-- Appends events to one stream that exists, if its head is where the caller
-- expects it; otherwise it does nothing and returns nothing.
-- $4 stream, $5 want (NULL any), $6 number of events, $7 revision, $8 marks;
-- events: $9 n, $10 name, $11 data, $12 subject, $13 correlation, $14 causation,
-- $15 actor
WITH moved AS (
    UPDATE {schema}.stream s
       SET head = s.head + $6::bigint
     WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.name = $4::text
       AND ($5::bigint IS NULL OR s.head = $5) AND s.state = 'open'
       AND $7::bigint = coalesce((SELECT g.revision FROM {schema}.registry g WHERE g.shard = $1 AND g.workspace = $2), 0)
       AND $8::text IS NULL
    RETURNING s.head, {now} AS at -- after the lock
), written AS (
    INSERT INTO {schema}.event
        (shard, id, n, workspace, stream, version, name, data, subject, correlation, causation, actor, at)
    SELECT $1, $3::uuid, c.n, $2, $4, moved.head - $6 + 1 + c.n,
           c.name, c.data::json, c.subject, c.correlation, c.causation, c.actor, moved.at
      FROM moved, unnest($9::bigint[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[])
                    AS c(n, name, data, subject, correlation, causation, actor)
)
SELECT moved.head, false FROM moved
