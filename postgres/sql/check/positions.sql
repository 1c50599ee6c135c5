-- Checks one page of reaction positions. Returns those that are beyond the end of their
-- stream, and those that miss its last event although the reaction wants every event and no
-- due notice announces it; and the last position of the page. A reaction that still waits
-- for older transactions is not checked.
{include check/page j.reaction, j.stream, j.head, j.due, j.watermark; c.reaction, c.stream;
    c.watermark > c.head OR c.due > c.head
    OR (c.every AND c.due < c.head AND NOT EXISTS (
        SELECT 1 FROM {schema}.due d
         WHERE d.shard = c.shard AND d.reaction = c.reaction AND d.workspace = c.workspace AND d.stream = c.stream
           AND d.version >= c.head));
    SELECT f.shard, f.workspace, f.reaction, f.stream, f.due, f.watermark,
           r.state = 'live' AND r.events = '["*"]' AS every,
           CASE WHEN r.source = 'event'
                THEN coalesce((SELECT s.head FROM {schema}.stream s
                                WHERE s.shard = f.shard AND s.workspace = f.workspace AND s.name = f.stream), -1)
                ELSE coalesce((SELECT pg_catalog.max(h.version) FROM {schema}.history h
                                WHERE h.shard = f.shard AND h.workspace = f.workspace AND h.stream = f.stream), -1) END AS head
      FROM {schema}.follow f
     CROSS JOIN LATERAL (
           SELECT r.state, r.events, r.source FROM {schema}.reaction r
            WHERE r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction AND r.state <> 'removed'
            LIMIT 1) AS r
     WHERE (f.shard, f.workspace, f.reaction, f.stream) > (:shard, :workspace, :reaction, :stream)
     ORDER BY f.shard, f.workspace, f.reaction, f.stream}
