-- Deletes the oldest sessions of an API key, so that :others are left besides :id. Its transaction has locked the key.
DELETE FROM {schema}.session s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.api_key = :key
   AND s.id IN (SELECT o.id
                  FROM {schema}.session o
                 WHERE o.shard = :shard AND o.workspace = :workspace AND o.api_key = :key AND o.id <> :id
                 ORDER BY o.created_at DESC, o.id DESC
                OFFSET :others)
RETURNING 1
