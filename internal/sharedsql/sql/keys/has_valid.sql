-- Returns whether any valid key exists.
SELECT EXISTS (SELECT 1 FROM {schema}.api_key AS k WHERE k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > {now}))
 WHERE :shard IS NOT NULL AND :workspace IS NOT NULL
