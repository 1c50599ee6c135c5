-- Deletes the oldest sessions of an API key, so that :others are left besides :id. Its transaction has locked the key.
WITH old AS MATERIALIZED (
    SELECT o.shard, o.workspace, o.ctid AS place
      FROM {schema}.session o
     WHERE o.shard = :shard AND o.workspace = :workspace AND o.api_key = :key AND o.id <> :id
     ORDER BY o.created_at DESC, o.id DESC
    OFFSET :others
)
DELETE FROM {schema}.session s
 USING old
 WHERE s.ctid = old.place AND s.shard = old.shard AND s.workspace = old.workspace
RETURNING 1
