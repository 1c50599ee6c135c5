-- Lists failed runs, the oldest first.
SELECT r.id, coalesce(r.finished_at, r.updated_at), '', coalesce(r.prune_at, 0), r.id, r.definition, r.step, coalesce(substr(r.error, 1, 500), ''), coalesce(r.key, '')
  FROM holdfast_run AS r INDEXED BY holdfast_run_live
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.status = 'FAILED' AND r.status NOT IN ('COMPLETED', 'CANCELLED')
 ORDER BY r.id
 LIMIT :limit
