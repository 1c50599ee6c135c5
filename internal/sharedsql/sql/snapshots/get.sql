SELECT s.version, s.data{text}
  FROM {schema}.snapshot AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.stream = :stream AND s.kind = :kind
