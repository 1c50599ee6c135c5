-- Records when API keys were last used.
UPDATE holdfast_api_key AS k
   SET last_used_at = {now} - (q.value ->> 't')
  FROM json_each(:uses) AS q
 WHERE k.id = q.value ->> 'i' AND (k.last_used_at IS NULL OR k.last_used_at < {now} - (q.value ->> 't'))
RETURNING 1
