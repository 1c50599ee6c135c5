-- Stores effect calls of a holder that has lost its lease, without changing the operation.
INSERT INTO holdfast_late_call (shard, workspace, operation, name, ordinal, epoch, state, id, subject, result, node, at)
SELECT :shard, :workspace, :operation, q.value ->> 'n', q.value ->> 'o', :epoch, q.value ->> 's', q.value ->> 'i', :subject, q.value -> 'r', :node, {now}
  FROM json_each(:calls) AS q
 WHERE (SELECT count(*) FROM holdfast_late_call AS l
         WHERE l.shard = :shard AND l.workspace = :workspace AND l.operation = :operation AND l.name = q.value ->> 'n' AND l.ordinal = q.value ->> 'o') < 20
ON CONFLICT (shard, workspace, operation, name, ordinal, epoch, state) DO NOTHING
RETURNING 1
