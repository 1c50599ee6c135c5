-- Returns the claim of a token.
SELECT t.lifecycle, t.entity, t.operation, t.epoch, t.requester
  FROM {schema}.token AS t
 WHERE t.shard = :shard AND t.workspace = :workspace AND t.hash = :hash
