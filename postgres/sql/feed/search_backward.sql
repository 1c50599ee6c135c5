-- Reads :scan positions of the feed, backward from a position, and returns the events that match a filter,
-- and the last position that it read. An event that its stream has dropped does not match.
-- The second column tells whether the row is the last of the feed.
WITH p AS MATERIALIZED (
    SELECT f.position, f.stream, f.version
      FROM {schema}.feed f
     WHERE f.shard = :shard AND f.workspace = :workspace AND f.position <= :from
     ORDER BY f.position DESC
     LIMIT :scan
), j AS MATERIALIZED (
    SELECT p.position, p.stream, p.version, e.name, e.correlation, e.causation, e.actor, e.at, e.subject,
           pg_catalog.row_number() OVER (ORDER BY p.position DESC) AS nth, pg_catalog.count(*) OVER () AS size,
           coalesce(e.kept AND
               {include events/matches e}
           , false) AS wanted
      FROM p LEFT JOIN LATERAL (
           SELECT x.name, x.correlation, x.causation, x.actor, x.at, x.subject,
                  x.version >= (SELECT s.first FROM {schema}.stream s WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = p.stream) AS kept
             FROM {schema}.event x
            WHERE x.shard = :shard AND x.workspace = :workspace AND x.stream = p.stream AND x.version = p.version
            LIMIT 1) AS e ON true
)
SELECT j.wanted, j.nth = j.size AND j.size < :scan, j.position, j.stream, j.version, coalesce(j.name, ''),
       CASE WHEN j.wanted THEN coalesce((SELECT e.data::text FROM {schema}.event e
                                          WHERE e.shard = :shard AND e.workspace = :workspace AND e.stream = j.stream AND e.version = j.version), 'null')
            ELSE 'null' END,
       coalesce(j.correlation, ''), coalesce(j.causation, ''), coalesce(j.actor, ''), coalesce(j.at, 'epoch'), coalesce(j.subject, '')
  FROM j
 WHERE j.wanted OR j.nth = j.size
 ORDER BY j.nth
 LIMIT :limit
