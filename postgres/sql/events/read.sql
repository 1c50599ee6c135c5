-- Reads a stream forward from a version. A stream whose name begins with '$' is in the
-- history, any other among the events; a name is in one of the tables only. Versions below
-- the first retained one are gone, even if they are not yet deleted.
SELECT a.id, a.version, a.name, a.data::text, coalesce(a.correlation, ''), coalesce(a.causation, ''), coalesce(a.actor, ''), a.at, coalesce(a.subject, '')
  FROM ((SELECT e.id, e.version, e.name, e.data, e.correlation, e.causation, e.actor, e.at, e.subject
           FROM {schema}.event e
          WHERE e.shard = :shard AND e.workspace = :workspace AND e.stream = :stream AND e.version >= :from
            AND e.version >= (SELECT s.first FROM {schema}.stream s WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream)
          ORDER BY e.version LIMIT :limit)
        UNION ALL
        (SELECT h.id, h.version, h.name, h.data, h.correlation, h.causation, h.actor, h.at, NULL AS subject
           FROM {schema}.history h
          WHERE h.shard = :shard AND h.workspace = :workspace AND h.stream = :stream AND h.version >= :from
          ORDER BY h.version LIMIT :limit)) a
 ORDER BY a.version
 LIMIT :limit
