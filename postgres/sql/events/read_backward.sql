-- Reads a stream backward from a version.
SELECT a.id, a.version, a.name, a.data::text, coalesce(a.correlation, ''), coalesce(a.causation, ''), coalesce(a.actor, ''), a.at, coalesce(a.subject, '')
  FROM ((SELECT e.id, e.version, e.name, e.data, e.correlation, e.causation, e.actor, e.at, e.subject
           FROM {schema}.event e
          WHERE e.shard = :shard AND e.workspace = :workspace AND e.stream = :stream AND e.version <= :from
            AND e.version >= (SELECT s.first FROM {schema}.stream s WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream)
          ORDER BY e.version DESC LIMIT :limit)
        UNION ALL
        (SELECT h.id, h.version, h.name, h.data, h.correlation, h.causation, h.actor, h.at, NULL AS subject
           FROM {schema}.history h
          WHERE h.shard = :shard AND h.workspace = :workspace AND h.stream = :stream AND h.version <= :from
          ORDER BY h.version DESC LIMIT :limit)) a
 ORDER BY a.version DESC
 LIMIT :limit
