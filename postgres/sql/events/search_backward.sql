-- Reads :scan events of a stream, backward from a version, and returns those that match a filter, and
-- the last one that it read, so that a search continues after it. :scan bounds what one statement reads.
-- The second column tells whether the row is the last of the stream.
WITH p AS MATERIALIZED (
    (SELECT e.version, e.name, e.correlation, e.causation, e.actor, e.at, e.subject
       FROM {schema}.event e
      WHERE e.shard = :shard AND e.workspace = :workspace AND e.stream = :stream AND e.version <= :from
        AND e.version >= (SELECT s.first FROM {schema}.stream s WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream)
      ORDER BY e.version DESC LIMIT :scan)
    UNION ALL
    (SELECT h.version, h.name, h.correlation, h.causation, h.actor, h.at, NULL AS subject
       FROM {schema}.history h
      WHERE h.shard = :shard AND h.workspace = :workspace AND h.stream = :stream AND h.version <= :from
      ORDER BY h.version DESC LIMIT :scan)
), j AS (
    SELECT p.*, pg_catalog.row_number() OVER (ORDER BY p.version DESC) AS nth, pg_catalog.count(*) OVER () AS size,
           coalesce(
               {include events/matches p}
           , false) AS wanted
      FROM p
)
SELECT j.wanted, j.nth = j.size AND j.size < :scan, j.version::bigint, :stream, j.version, j.name,
       CASE WHEN j.wanted THEN coalesce((SELECT e.data::text FROM {schema}.event e
                                          WHERE e.shard = :shard AND e.workspace = :workspace AND e.stream = :stream AND e.version = j.version),
                                        (SELECT h.data::text FROM {schema}.history h
                                          WHERE h.shard = :shard AND h.workspace = :workspace AND h.stream = :stream AND h.version = j.version), 'null')
            ELSE 'null' END,
       coalesce(j.correlation, ''), coalesce(j.causation, ''), coalesce(j.actor, ''), j.at, coalesce(j.subject, '')
  FROM j
 WHERE j.wanted OR j.nth = j.size
 ORDER BY j.nth
 LIMIT :limit
