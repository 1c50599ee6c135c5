-- Judges the heads of streams, a page at a time: answers those that are not
-- where their events end, or have a gap below, and the last of the page. All
-- workspaces are read, in order.
-- after: $1 shard, $2 workspace, $3 stream; $4 page
SELECT j.nth, j.bad, j.shard, j.workspace, j.name, ''::text, j.head, j.events, j.last
  FROM (SELECT row_number() OVER (ORDER BY c.shard, c.workspace, c.name) AS nth, count(*) OVER () AS size,
               c.events <> c.head + 1 OR c.last <> c.head AS bad, c.*
          FROM (SELECT s.shard, s.workspace, s.name, s.head,
                       (SELECT count(*) FROM {schema}.event e
                         WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name) AS events,
                       (SELECT coalesce(max(e.version), -1) FROM {schema}.event e
                         WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name) AS last
                  FROM {schema}.stream s
                 WHERE (s.shard, s.workspace, s.name) > ($1::smallint, $2::text, $3::text)
                 ORDER BY s.shard, s.workspace, s.name
                 LIMIT $4) AS c) AS j
 WHERE j.bad OR j.nth = j.size
 ORDER BY j.nth
