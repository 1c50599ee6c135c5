-- Lists handlers in the order of their names, after a given one, or returns one.
-- :name ('' for all)
SELECT h.name, h.kind, h.url, h.safety, h.unknown, h.timeout, h.secret, h.headers, h.created_at, h.updated_at
  FROM {schema}.handler AS h
 WHERE h.shard = :shard AND h.workspace = :workspace AND (:name = '' OR h.name = :name) AND h.name > :after
 ORDER BY h.name
 LIMIT :limit
