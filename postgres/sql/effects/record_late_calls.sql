-- Stores effect calls of a holder that has lost its lease, without changing the operation. Stores at most 20
-- for each effect.
-- :calls a JSON list of {i: id, n: name, o: ordinal, s: state, r: result}
INSERT INTO {schema}.late_call (shard, workspace, operation, name, ordinal, epoch, state, id, subject, result, node, at)
SELECT :shard, :workspace, :operation, q.item ->> 'n'::text, (q.item ->> 'o'::text)::integer, :epoch, q.item ->> 's'::text, (q.item ->> 'i'::text)::uuid, :subject, (q.item -> 'r'::text)::json,
       :node, {now}
  FROM pg_catalog.json_array_elements(:calls::json) AS q(item)
 WHERE (SELECT pg_catalog.count(*) FROM {schema}.late_call l
         WHERE l.shard = :shard AND l.workspace = :workspace AND l.operation = :operation AND l.name = q.item ->> 'n'::text AND l.ordinal = (q.item ->> 'o'::text)::integer) < 20
ON CONFLICT (shard, workspace, operation, name, ordinal, epoch, state) DO NOTHING
RETURNING 1
