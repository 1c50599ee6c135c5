-- Lists the reactions of a workspace, or returns one.
-- :name ('' for all)
SELECT r.name, r.source, r.events{text}, r.streams, r.options{text}, r.base, r.state, coalesce(r.waits{text}, ''),
       r.created_at, r.updated_at
  FROM {schema}.reaction AS r
 WHERE r.shard = :shard AND r.workspace = :workspace AND (:name = '' OR r.name = :name)
 ORDER BY r.name
