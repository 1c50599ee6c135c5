-- Deletes the feed positions of events below the first retained version.
DELETE FROM {schema}.feed e
 USING {schema}.stream s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream AND s.first >= :to
   AND e.shard = s.shard AND e.workspace = s.workspace AND e.stream = s.name
   AND e.version >= :from AND e.version < :to
