-- Selects the stream and locks it.
FROM {schema}.stream s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.name = :stream
   FOR UPDATE
