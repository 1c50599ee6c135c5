-- Lists steps of runs that wait until a person says what happened.
SELECT s.run || '/' || s.name || '/' || s.visit, coalesce(s.taken_at, s.created_at), s.handler, 0, s.run, s.name, CAST(s.visit AS TEXT), coalesce(substr(s.error, 1, 500), ''), ''
  FROM holdfast_step AS s INDEXED BY holdfast_step_uncertain
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.uncertain = 1
 ORDER BY s.run, s.name, s.visit
 LIMIT :limit
