-- A member: $1 shard, $2 workspace, $3 id of the event, $4 stream, $5 expected
-- version (-1: the stream must not exist), $6 name, $7 data
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::bigint[], $6::text[], $7::text[])
             WITH ORDINALITY AS m(shard, workspace, event, stream, want, name, data, member)
), moved AS (
    UPDATE {schema}.stream s SET head = s.head + 1
      FROM m
     WHERE s.shard = m.shard AND s.workspace = m.workspace AND s.name = m.stream AND s.head = m.want
    RETURNING s.shard, s.workspace, s.name, s.head
), made AS (
    INSERT INTO {schema}.stream (shard, workspace, name, head)
    SELECT m.shard, m.workspace, m.stream, 0 FROM m WHERE m.want = -1
    ON CONFLICT (shard, workspace, name) DO NOTHING
    RETURNING shard, workspace, name, head
), won AS (
    SELECT m.*, h.head
      FROM m JOIN (SELECT * FROM moved UNION ALL SELECT * FROM made) h 
        ON h.shard = m.shard AND h.workspace = m.workspace AND h.name = m.stream
), written AS (
    INSERT INTO {schema}.event (shard, id, n, workspace, stream, version, name, data, at)
    SELECT shard, event, 0, workspace, stream, head, name, data::json, clock_timestamp() FROM won
)
SELECT member, head FROM won
