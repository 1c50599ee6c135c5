-- Whether there is a key that is good now.
-- $1 shard, $2 workspace, both not looked at
SELECT EXISTS (SELECT 1 FROM {schema}.api_key k WHERE k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > {now}))
 WHERE $1::smallint IS NOT NULL AND $2::text IS NOT NULL
