-- Returns the version that the row of a scope began with.
SELECT s.born
  FROM {schema}.scope AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id = :scope
