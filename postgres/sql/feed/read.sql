-- Reads the feed after a position. Each row has the current end of the feed, and one row is
-- returned even if there is nothing to read; the counter and the events are of one snapshot.
-- The second column is the last position before a gap that :after is in, or -1 (see the table feed_gap).
-- Versions below the first retained one are gone, even if they are not yet deleted. Data of more than :bytes is left out.
SELECT q.last, q.gap, coalesce(p.position, 0), coalesce(p.stream, ''), coalesce(p.version, -1), coalesce(p.name, ''), CASE WHEN p.data IS NULL THEN 'null' WHEN pg_catalog.octet_length(p.data::text) <= :bytes THEN p.data::text ELSE '' END,
       coalesce(p.correlation, ''), coalesce(p.causation, ''), coalesce(p.actor, ''), coalesce(p.at, 'epoch'), coalesce(p.subject, '')
  FROM (SELECT coalesce((SELECT x.last FROM {schema}.sequence x WHERE x.shard = :shard AND x.workspace = :workspace), 0) AS last,
               coalesce((SELECT g.last FROM {schema}.feed_gap g WHERE g.shard = :shard AND g.workspace = :workspace AND g.last < :after AND g.next > :after LIMIT 1), -1) AS gap) q
  LEFT JOIN (
       SELECT f.position, f.stream, f.version, e.name, e.data, e.correlation, e.causation, e.actor, e.at, e.subject
         FROM {schema}.feed f
        CROSS JOIN LATERAL (
              SELECT x.name, x.data, x.correlation, x.causation, x.actor, x.at, x.subject
                FROM {schema}.event x
               WHERE x.shard = f.shard AND x.workspace = f.workspace AND x.stream = f.stream AND x.version = f.version
                 AND x.version >= (SELECT s.first FROM {schema}.stream s WHERE s.shard = f.shard AND s.workspace = f.workspace AND s.name = f.stream)
               LIMIT 1) e
        WHERE f.shard = :shard AND f.workspace = :workspace AND f.position > :after
        ORDER BY f.position
        LIMIT :limit) p ON true
 ORDER BY p.position
