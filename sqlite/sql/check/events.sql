-- Finds events on a stream that has no head, a page of streams at a time, and answers the last of the page too.
SELECT j.nth, j.bad, j.shard, j.workspace, j.stream, '', -1, j.events, j.last
  FROM (SELECT row_number() OVER (ORDER BY c.shard, c.workspace, c.stream) AS nth, count(*) OVER () AS size,
               NOT EXISTS (SELECT 1 FROM holdfast_stream AS s
                            WHERE s.shard = c.shard AND s.workspace = c.workspace AND s.name = c.stream) AS bad, c.*
          FROM (SELECT e.shard, e.workspace, e.stream, count(*) AS events, max(e.version) AS last
                  FROM holdfast_event AS e
                 WHERE (e.shard, e.workspace, e.stream) > (:shard, :workspace, :stream)
                   AND substr(e.stream, 1, 6) <> '$void/'
                 GROUP BY e.shard, e.workspace, e.stream
                 ORDER BY e.shard, e.workspace, e.stream
                 LIMIT :limit) AS c) AS j
 WHERE j.bad OR j.nth = j.size
 ORDER BY j.nth
