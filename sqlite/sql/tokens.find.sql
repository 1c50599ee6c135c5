-- What a token stands for.
-- ?1 shard, ?2 workspace, ?3 hash
-- do
SELECT t.lifecycle, t.entity, t.operation, t.epoch, t.requester
  FROM holdfast_token AS t
 WHERE t.shard = ?1 AND t.workspace = ?2 AND t.hash = ?3
