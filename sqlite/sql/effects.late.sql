-- Stores calls of effects by a holder that has lost its lease, and changes no operation. There are at most 20
-- of an effect.
-- ?1 shard, ?2 workspace, ?3 operation, ?4 epoch, ?5 subject, ?6 node, ?7 a JSON list of {i: id, n: name, o: ordinal, s: state, r: result}
-- do
INSERT INTO holdfast_late_call (shard, workspace, operation, name, ordinal, epoch, state, id, subject, result, node, at)
SELECT ?1, ?2, ?3, q.value ->> 'n', q.value ->> 'o', ?4, q.value ->> 's', q.value ->> 'i', ?5, q.value -> 'r', ?6, {now}
  FROM json_each(?7) AS q
 WHERE (SELECT count(*) FROM holdfast_late_call AS l
         WHERE l.shard = ?1 AND l.workspace = ?2 AND l.operation = ?3 AND l.name = q.value ->> 'n' AND l.ordinal = q.value ->> 'o') < 20
ON CONFLICT (shard, workspace, operation, name, ordinal, epoch, state) DO NOTHING
RETURNING 1
