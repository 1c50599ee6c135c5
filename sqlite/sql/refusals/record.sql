-- Records refused callers.
INSERT INTO holdfast_attempt (shard, workspace, lifecycle, entity, id, step, requester, code, detail, at)
SELECT :shard, q.value ->> 'w', q.value ->> 'l', q.value ->> 'e', q.value ->> 'i', q.value ->> 's', q.value ->> 'r', q.value ->> 'c',
       q.value -> 'd', {now}
  FROM json_each(:refusals) AS q
 WHERE :workspace IS NOT NULL
ON CONFLICT (shard, workspace, lifecycle, entity, id) DO NOTHING
RETURNING 1
