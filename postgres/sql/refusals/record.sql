-- Records refused callers.
-- :refusals a JSON list of {w: workspace, l: lifecycle, e: entity, i: id, s: step, r: requester, c: code, d: detail}
INSERT INTO {schema}.attempt (shard, workspace, lifecycle, entity, id, step, requester, code, detail, at)
SELECT :shard, q.item ->> 'w'::text, q.item ->> 'l'::text, q.item ->> 'e'::text, (q.item ->> 'i'::text)::uuid, q.item ->> 's'::text, q.item ->> 'r'::text, q.item ->> 'c'::text,
       (q.item -> 'd'::text)::text::json, {now}
  FROM pg_catalog.jsonb_array_elements(:refusals::jsonb) AS q(item)
 WHERE :workspace IS NOT NULL
ON CONFLICT (shard, workspace, lifecycle, entity, id) DO NOTHING
RETURNING 1
