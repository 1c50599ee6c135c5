-- Appends events to streams, each if its head is where the caller expects it.
-- The row of each stream is locked first, in key order, so that a loser is told
-- the true head, also when it lost by waiting for the lock. A stream is made
-- only under an advisory lock on its name, so that a group need not wait for
-- somebody else's unfinished insert.
-- $4 stream, $5 want (NULL any, -1 none), $6 number of events; events: $7 owner,
-- $8 n, $9 name, $10 data, $11 correlation, $12 causation, $13 actor
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::bigint[], $6::bigint[])
             WITH ORDINALITY AS m(shard, workspace, command, stream, want, size, member)
), cur AS (
    SELECT s.shard, s.workspace, s.name, s.head
      FROM m JOIN {schema}.stream s
        ON s.shard = m.shard AND s.workspace = m.workspace AND s.name = m.stream
     ORDER BY s.shard, s.workspace, s.name
       FOR UPDATE OF s{skip}
), moved AS (
    UPDATE {schema}.stream s
       SET head = s.head + m.size
      FROM m JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.name = m.stream
     WHERE s.shard = m.shard AND s.workspace = m.workspace AND s.name = m.stream
       AND (m.want IS NULL OR m.want = cur.head)
    RETURNING s.shard, s.workspace, s.name, s.head
), made AS (
    INSERT INTO {schema}.stream (shard, workspace, name, head)
    SELECT m.shard, m.workspace, m.stream, m.size - 1
      FROM m
     WHERE (m.want IS NULL OR m.want = -1)
       AND CASE WHEN EXISTS (SELECT 1 FROM cur WHERE cur.shard = m.shard AND cur.workspace = m.workspace AND cur.name = m.stream)
                  OR EXISTS (SELECT 1 FROM {schema}.stream s WHERE s.shard = m.shard AND s.workspace = m.workspace AND s.name = m.stream)
                THEN false
                ELSE {enter}(hashtextextended('stream/' || m.shard || '/' || m.workspace || '/' || m.stream, 0)){entered} END
     ORDER BY m.shard, m.workspace, m.stream
    ON CONFLICT (shard, workspace, name) DO NOTHING
    RETURNING shard, workspace, name, head
), won AS (
    SELECT m.member, m.shard, m.workspace, m.command, m.stream, m.size, w.head
      FROM m JOIN (SELECT * FROM moved UNION ALL SELECT * FROM made) w
        ON w.shard = m.shard AND w.workspace = m.workspace AND w.name = m.stream
), written AS (
    INSERT INTO {schema}.event
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT won.shard, won.command, c.n, won.workspace, won.stream, won.head - won.size + 1 + c.n,
           c.name, c.data::json, c.correlation, c.causation, c.actor, {now}
      FROM won JOIN unnest($7::bigint[], $8::bigint[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[])
                    AS c(owner, n, name, data, correlation, causation, actor) ON c.owner = won.member
)
SELECT m.member,
       CASE WHEN won.member IS NOT NULL THEN 1
            WHEN cur.name IS NOT NULL THEN 0
            WHEN EXISTS (SELECT 1 FROM {schema}.stream s WHERE s.shard = m.shard AND s.workspace = m.workspace AND s.name = m.stream) THEN 2
            WHEN m.want >= 0 THEN 0
            ELSE 2 END,
       coalesce(won.head, cur.head, -1)
  FROM m
  LEFT JOIN won ON won.member = m.member
  LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.name = m.stream
