-- Judges tasks, a page at a time: answers those that are not at the version
-- of their last event, or whose history has a gap above its first version kept, and the last of the page.
-- after: ?1 shard, ?2 workspace, ?3 queue, ?4 task; ?5 page
-- do
SELECT j.nth, j.bad, j.shard, j.workspace, j.queue, j.id, j.version, j.events, j.last
  FROM (SELECT row_number() OVER (ORDER BY c.shard, c.workspace, c.queue, c.id) AS nth, count(*) OVER () AS size,
               c.events <> c.version - c.low + 1 OR c.last <> c.version AS bad, c.*
          FROM (SELECT x.shard, x.workspace, x.queue, x.id, x.version,
                       (SELECT count(*) FROM holdfast_history AS h
                         WHERE h.shard = x.shard AND h.workspace = x.workspace
                           AND h.stream = '$task/' || x.queue || '/' || x.id) AS events,
                       (SELECT coalesce(max(h.version), -1) FROM holdfast_history AS h
                         WHERE h.shard = x.shard AND h.workspace = x.workspace
                           AND h.stream = '$task/' || x.queue || '/' || x.id) AS last,
                       (SELECT coalesce(min(h.version), 0) FROM holdfast_history AS h
                         WHERE h.shard = x.shard AND h.workspace = x.workspace
                           AND h.stream = '$task/' || x.queue || '/' || x.id) AS low
                  FROM holdfast_task AS x
                 WHERE (x.shard, x.workspace, x.queue, x.id) > (?1, ?2, ?3, ?4)
                 ORDER BY x.shard, x.workspace, x.queue, x.id
                 LIMIT +?5) AS c) AS j
 WHERE j.bad OR j.nth = j.size
 ORDER BY j.nth
