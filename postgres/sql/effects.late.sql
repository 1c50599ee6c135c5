-- Stores calls of effects by a holder that has lost its lease, and changes no operation. There are at most 20
-- of an effect.
-- $1 shard, $2 workspace, $3 operation, $4 epoch, $5 subject, $6 node, $7 a JSON list of {i: id, n: name, o: ordinal, s: state, r: result}
INSERT INTO {schema}.late_call (shard, workspace, operation, name, ordinal, epoch, state, id, subject, result, node, at)
SELECT $1::smallint, $2::text, $3::text, q.item ->> 'n'::text, (q.item ->> 'o'::text)::integer, $4::bigint, q.item ->> 's'::text, (q.item ->> 'i'::text)::uuid, $5::text, (q.item -> 'r'::text)::json,
       $6::text, {now}
  FROM pg_catalog.json_array_elements($7::text::json) AS q(item)
 WHERE (SELECT pg_catalog.count(*) FROM {schema}.late_call l
         WHERE l.shard = $1::smallint AND l.workspace = $2::text AND l.operation = $3::text AND l.name = q.item ->> 'n'::text AND l.ordinal = (q.item ->> 'o'::text)::integer) < 20
ON CONFLICT (shard, workspace, operation, name, ordinal, epoch, state) DO NOTHING
RETURNING 1
