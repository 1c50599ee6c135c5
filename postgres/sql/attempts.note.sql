-- Notes who was refused.
-- $1 shard, $2 workspace, not looked at, $3 a JSON list of {w: workspace, l: lifecycle, e: entity, i: id, s: step, r: requester, c: code,
-- d: detail}
INSERT INTO {schema}.attempt (shard, workspace, lifecycle, entity, id, step, requester, code, detail, at)
SELECT $1::smallint, q.item ->> 'w'::text, q.item ->> 'l'::text, q.item ->> 'e'::text, (q.item ->> 'i'::text)::uuid, q.item ->> 's'::text, q.item ->> 'r'::text, q.item ->> 'c'::text,
       (q.item -> 'd'::text)::text::json, {now}
  FROM pg_catalog.jsonb_array_elements($3::text::jsonb) AS q(item)
 WHERE $2::text IS NOT NULL
ON CONFLICT (shard, workspace, lifecycle, entity, id) DO NOTHING
RETURNING 1
