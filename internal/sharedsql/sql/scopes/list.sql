-- Lists the scopes of a kind in the order of their ids, also tombstones and expired ones, which the reader leaves out: so the
-- statement reads no more rows than it returns.
-- :from and :upto bound the ids; :after is left out. There is one lower bound, because SQLite uses only one
SELECT s.id, s.version, s.state IS NOT NULL AND (s.expires_at IS NULL OR s.expires_at > {now}), s.created_at, s.updated_at, coalesce(s.expires_at, {no_time})
  FROM {schema}.scope AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.kind = :kind AND s.id >= :from AND s.id <> :after AND s.id < :upto
 ORDER BY s.id
 LIMIT :limit
