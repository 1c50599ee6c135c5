-- Stores calls of effects by a holder that has lost its lease, and changes no operation. A call that
-- the journal has with the same result is no contradiction, unless it is a body, whose results tell
-- nothing, that another attempt began anew; nor is one of unknown outcome that may be repeated under
-- its key, unless it is known not to have happened.
-- ?1 shard, ?2 workspace, ?3 operation, ?4 epoch, ?5 subject, ?6 node, ?7 a JSON list of {i: id, n: name, o: ordinal, s: state, r: result}
-- do
INSERT INTO holdfast_late_call (shard, workspace, operation, name, ordinal, epoch, state, id, subject, result, node, at)
SELECT x.shard, x.workspace, x.operation, x.name, x.ordinal, ?4, q.value ->> 's', q.value ->> 'i', ?5, q.value -> 'r', ?6, {now}
  FROM json_each(?7) AS q
  JOIN holdfast_effect AS x ON x.shard = ?1 AND x.workspace = ?2 AND x.operation = ?3
                           AND x.name = q.value ->> 'n' AND x.ordinal = q.value ->> 'o'
 WHERE CASE WHEN q.value ->> 's' = 'done' THEN x.state <> 'done' OR json(coalesce(x.result, 'null')) <> json(q.value -> 'r')
                                                  OR x.name = '$body' AND x.epoch <> ?4 AND x.policy <> 'retry'
            ELSE x.policy <> 'retry' OR x.state = 'notDone' END
ON CONFLICT (shard, workspace, operation, name, ordinal, epoch, state) DO NOTHING
RETURNING 1
