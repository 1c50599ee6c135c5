-- Finds events of a stream that has no row, one page of streams at a time, and returns the last stream of the page too.
{include check/page j.stream, '', -1, j.events, j.last; c.stream;
    NOT EXISTS (SELECT 1 FROM holdfast_stream AS s
                 WHERE s.shard = c.shard AND s.workspace = c.workspace AND s.name = c.stream);
    SELECT e.shard, e.workspace, e.stream, count(*) AS events, max(e.version) AS last
      FROM holdfast_event AS e
     WHERE (e.shard, e.workspace, e.stream) > (:shard, :workspace, :stream)
       AND substr(e.stream, 1, 6) <> '$void/'
     GROUP BY e.shard, e.workspace, e.stream
     ORDER BY e.shard, e.workspace, e.stream}
