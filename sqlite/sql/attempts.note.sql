-- Notes who was refused.
-- ?1 shard, ?2 workspace, not looked at, ?3 a JSON list of {w: workspace, l: lifecycle, e: entity, i: id, s: step, r: requester, c: code,
-- d: detail}
-- do
INSERT INTO holdfast_attempt (shard, workspace, lifecycle, entity, id, step, requester, code, detail, at)
SELECT ?1, q.value ->> 'w', q.value ->> 'l', q.value ->> 'e', q.value ->> 'i', q.value ->> 's', q.value ->> 'r', q.value ->> 'c',
       q.value -> 'd', {now}
  FROM json_each(?3) AS q
 WHERE ?2 IS NOT NULL
ON CONFLICT (shard, workspace, lifecycle, entity, id) DO NOTHING
RETURNING 1
