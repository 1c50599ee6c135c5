-- Checks one page of reaction positions. Returns those that are beyond the end of their
-- stream, and those that miss its last event although the reaction wants every event; and
-- the last position of the page.
{include check/page j.reaction, j.stream, j.head, j.due, j.watermark; c.reaction, c.stream;
    c.watermark > c.head OR c.due > c.head OR (c.every AND c.due < c.head);
    SELECT f.shard, f.workspace, f.reaction, f.stream, f.due, f.watermark,
           r.state = 'live' AND r.events = '["*"]' AS every,
           CASE WHEN r.source = 'event'
                THEN coalesce((SELECT s.head FROM holdfast_stream AS s
                                WHERE s.shard = f.shard AND s.workspace = f.workspace AND s.name = f.stream), -1)
                ELSE coalesce((SELECT max(h.version) FROM holdfast_history AS h
                                WHERE h.shard = f.shard AND h.workspace = f.workspace AND h.stream = f.stream), -1) END AS head
      FROM holdfast_follow AS f
      JOIN holdfast_reaction AS r ON r.shard = f.shard AND r.workspace = f.workspace AND r.name = f.reaction AND r.state <> 'removed'
     WHERE (f.shard, f.workspace, f.reaction, f.stream) > (:shard, :workspace, :reaction, :stream)
     ORDER BY f.shard, f.workspace, f.reaction, f.stream}
