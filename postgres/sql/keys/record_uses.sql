-- Records when API keys were last used. A key that is locked is left out.
-- :uses a JSON list of {i: id, t: age in ms}
WITH used AS MATERIALIZED (
    SELECT k.place, {now} - (q.item ->> 't'::text)::bigint::float8 * interval '1 ms' AS at
      FROM pg_catalog.jsonb_array_elements(:uses::jsonb) AS q(item)
     CROSS JOIN LATERAL (
           SELECT k.ctid AS place FROM {schema}.api_key k
            WHERE k.id = q.item ->> 'i'::text
              FOR UPDATE SKIP LOCKED) AS k
     WHERE :shard IS NOT NULL AND :workspace IS NOT NULL
)
UPDATE {schema}.api_key k
   SET last_used_at = used.at
  FROM used
 WHERE k.ctid = used.place AND (k.last_used_at IS NULL OR k.last_used_at < used.at)
RETURNING 1
