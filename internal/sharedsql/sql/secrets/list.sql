-- Lists secrets in the order of their names, after a given one, or returns one.
-- :name ('' for all)
SELECT s.name, s.version, s.sealed, coalesce(CASE WHEN s.former_until > {now} THEN s.former END, ''), coalesce(s.former_until, {no_time}),
       s.created_by, s.created_at, s.updated_by, s.updated_at
  FROM {schema}.named_secret AS s
 WHERE s.shard = :shard AND s.workspace = :workspace AND (:name = '' OR s.name = :name) AND s.name > :after
 ORDER BY s.name
 LIMIT :limit
