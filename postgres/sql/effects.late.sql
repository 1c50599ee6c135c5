-- Stores calls of effects by a holder that has lost its lease, and changes no operation. A call that
-- the journal has with the same result is no contradiction, unless it is a body, whose results tell
-- nothing, that another attempt began anew; nor is one of unknown outcome that may be repeated under
-- its key, unless it is known not to have happened.
-- $1 shard, $2 workspace, $3 operation, $4 epoch, $5 subject, $6 node, $7 a JSON list of {i: id, n: name, o: ordinal, s: state, r: result}
INSERT INTO {schema}.late_call (shard, workspace, operation, name, ordinal, epoch, state, id, subject, result, node, at)
SELECT x.shard, x.workspace, x.operation, x.name, x.ordinal, $4::bigint, q.item ->> 's', (q.item ->> 'i')::uuid, $5::text, (q.item -> 'r')::text::json, $6::text, {now}
  FROM jsonb_array_elements($7::text::jsonb) AS q(item)
  JOIN {schema}.effect x ON x.shard = $1::smallint AND x.workspace = $2::text AND x.operation = $3::text
                        AND x.name = q.item ->> 'n' AND x.ordinal = (q.item ->> 'o')::integer
 WHERE CASE WHEN q.item ->> 's' = 'done' THEN x.state <> 'done' OR coalesce(x.result::text::jsonb, 'null') <> q.item -> 'r'
                                                 OR x.name = '$body' AND x.epoch <> $4::bigint AND x.policy <> 'retry'
            ELSE x.policy <> 'retry' OR x.state = 'notDone' END
ON CONFLICT (shard, workspace, operation, name, ordinal, epoch, state) DO NOTHING
RETURNING 1
