-- Notes who was refused.
-- $1 shard, $2 workspace, not looked at, $3 a JSON list of {w: workspace, l: lifecycle, e: entity, i: id, s: step, r: requester, c: code,
-- d: detail}
INSERT INTO {schema}.attempt (shard, workspace, lifecycle, entity, id, step, requester, code, detail, at)
SELECT $1::smallint, q.item ->> 'w', q.item ->> 'l', q.item ->> 'e', (q.item ->> 'i')::uuid, q.item ->> 's', q.item ->> 'r', q.item ->> 'c',
       (q.item -> 'd')::text::json, {now}
  FROM jsonb_array_elements($3::text::jsonb) AS q(item)
 WHERE $2::text IS NOT NULL
ON CONFLICT (shard, workspace, lifecycle, entity, id) DO NOTHING
RETURNING 1
