-- Checks one page of stream heads. Returns those whose head differs from their last event,
-- or that have a gap between the first retained event and the last; and the last stream of
-- the page. Events below the first retained one may not be deleted yet; below the version
-- recorded as deleted there must be none. Reads all workspaces, in order.
SELECT j.nth, j.bad, j.shard, j.workspace, j.name, ''{text}, j.head, j.events, j.last, j.first, j.wrong
  FROM (SELECT {pg}row_number() OVER (ORDER BY c.shard, c.workspace, c.name) AS nth, {pg}count(*) OVER () AS size,
               c.events <> c.head - c.first + 1 OR c.last <> c.head OR c.wrong <> '' AS bad, c.*
          FROM (SELECT s.shard, s.workspace, s.name, s.head, s.first,
                       (SELECT {pg}count(*) FROM {schema}.event AS e
                         WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name AND e.version >= s.first) AS events,
                       (SELECT coalesce({pg}max(e.version), -1) FROM {schema}.event AS e
                         WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name) AS last,
                       CASE WHEN s.closed = 'tombstone' AND s.first <> s.head THEN 'tombstone'
                            WHEN (s.state = 'closing') <> (s.holder IS NOT NULL) THEN 'hold'
                            WHEN s.pruned > s.first OR EXISTS (
                                 SELECT 1 FROM {schema}.event AS e
                                  WHERE e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name AND e.version < s.pruned) THEN 'pruned'
                            ELSE '' END AS wrong
                  FROM {schema}.stream AS s
                 WHERE (s.shard, s.workspace, s.name) > (:shard, :workspace, :stream)
                 ORDER BY s.shard, s.workspace, s.name
                 LIMIT :limit) AS c) AS j
 WHERE j.bad OR j.nth = j.size
 ORDER BY j.nth
