-- The events of a plan.
SELECT :shard, :command, e.key, :workspace, '$run/' || :run, r.version - json_array_length(:plan, '$.events') + e.key + 1, e.value ->> 'name', e.value -> 'data', NULL, NULL, :plan ->> '$.actor', r.updated_at
  FROM holdfast_run AS r JOIN json_each(:plan, '$.events') AS e
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run
