-- Records when API keys were last used. A key that is locked is left out.
-- :uses a JSON list of {i: id, t: age in ms}
WITH used AS MATERIALIZED (
    SELECT k.id, {now} - (q.item ->> 't'::text)::bigint::float8 * interval '1 ms' AS at
      FROM pg_catalog.jsonb_array_elements(:uses::jsonb) AS q(item)
      JOIN {schema}.api_key k ON k.id = q.item ->> 'i'::text
     WHERE :shard IS NOT NULL AND :workspace IS NOT NULL
     ORDER BY k.id
       FOR UPDATE OF k SKIP LOCKED
)
UPDATE {schema}.api_key k
   SET last_used_at = used.at
  FROM used
 WHERE k.id = used.id AND (k.last_used_at IS NULL OR k.last_used_at < used.at)
RETURNING 1
