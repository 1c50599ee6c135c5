-- Lists steps of runs that wait until a person says what happened.
SELECT s.run || '/' || s.name || '/' || s.visit::text, coalesce(s.taken_at, s.created_at), s.handler, 'epoch'::timestamptz, s.run, s.name, s.visit::text, coalesce(pg_catalog.substr(s.error, 1, 500), ''), ''
  FROM {schema}.step s
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.uncertain
 ORDER BY s.run, s.name, s.visit
 LIMIT :limit
