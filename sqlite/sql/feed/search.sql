-- Reads :scan positions of the feed, forward from a position, and returns the events that match a filter, and the last position.
WITH p AS MATERIALIZED (
    SELECT f.position, f.stream, f.version
      FROM holdfast_feed AS f
     WHERE f.shard = :shard AND f.workspace = :workspace AND f.position >= :from
     ORDER BY f.position
     LIMIT +:scan
), j AS MATERIALIZED (
    SELECT p.position, p.stream, p.version, e.name, e.correlation, e.causation, e.actor, e.at, e.subject,
           row_number() OVER (ORDER BY p.position) AS nth, count(*) OVER () AS size,
           coalesce(e.version >= (SELECT s.first FROM holdfast_stream AS s WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = p.stream) AND
               {include events/matches e}
           , false) AS wanted
      FROM p LEFT JOIN holdfast_event AS e
        ON e.shard = :shard AND e.workspace = :workspace AND e.stream = p.stream AND e.version = p.version
)
SELECT j.wanted, j.nth = j.size AND j.size < :scan, j.position, j.stream, j.version, coalesce(j.name, ''),
       CASE WHEN j.wanted THEN coalesce((SELECT e.data FROM holdfast_event AS e
                                          WHERE e.shard = :shard AND e.workspace = :workspace AND e.stream = j.stream AND e.version = j.version), 'null')
            ELSE 'null' END,
       coalesce(j.correlation, ''), coalesce(j.causation, ''), coalesce(j.actor, ''), coalesce(j.at, 0), coalesce(j.subject, '')
  FROM j
 WHERE j.wanted OR j.nth = j.size
 ORDER BY j.nth
 LIMIT :limit
