-- The body of a step that begins with the plan.
INSERT INTO holdfast_effect AS x (shard, workspace, operation, name, ordinal, epoch, state, policy, begun_at)
SELECT :shard, :workspace, :plan ->> '$.body.operation', '$body', 0, :plan ->> '$.body.epoch', 'begun', :plan ->> '$.body.policy', {now}
 WHERE :plan ->> '$.body.operation' IS NOT NULL
ON CONFLICT (shard, workspace, operation, name, ordinal) DO UPDATE
   SET state = 'begun', epoch = excluded.epoch, policy = excluded.policy, begun_at = excluded.begun_at, result = NULL, ended_at = NULL
 WHERE x.state = 'notDone'
