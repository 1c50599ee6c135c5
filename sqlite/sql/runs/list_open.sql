-- Lists runs of a status that few runs have, the newest first: after a given one, of a definition.
SELECT r.workspace, r.id, r.definition, coalesce(r.key, ''), r.status, r.version, r.input, r.state, r.memo, coalesce(r.output, ''), coalesce(r.error, ''),
       r.step, r.visit, r.cancel_requested, r.created_at, coalesce(r.started_at, 0), coalesce(r.finished_at, 0)
  FROM holdfast_run AS r INDEXED BY holdfast_run_live
 WHERE r.shard = :shard AND r.workspace = :workspace AND (:after = '' OR r.id < :after) AND r.status = :status
   AND r.status NOT IN ('COMPLETED', 'CANCELLED') AND (:definition = '' OR r.definition = :definition)
 ORDER BY r.id DESC
 LIMIT :limit
