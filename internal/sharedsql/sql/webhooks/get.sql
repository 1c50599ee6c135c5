-- Returns one webhook, without its secrets.
SELECT w.id, w.name, w.url, w.events{text}, w.streams, w.version, w.created_by, w.created_at,
       coalesce(w.rotated_at, {no_time}), coalesce(w.former_until, {no_time}),
       w.headers, CASE WHEN w.secret LIKE 'secret:%' THEN w.secret ELSE '' END
  FROM {schema}.webhook AS w
 WHERE w.shard = :shard AND w.workspace = :workspace AND w.id = :id AND w.removed_at IS NULL
