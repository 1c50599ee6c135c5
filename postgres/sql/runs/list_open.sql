-- Lists runs of a status that few runs have, the newest first: after a given one, of a definition.
-- :after a run ('' for none); :definition ('' for any)
SELECT r.workspace, r.id, r.definition, coalesce(r.key, ''), r.status, r.version, r.input::text, r.state::text, r.memo::text, coalesce(r.output::text, ''), coalesce(r.error, ''),
       r.step, r.visit, r.cancel_requested, r.created_at, coalesce(r.started_at, 'epoch'), coalesce(r.finished_at, 'epoch')
  FROM {schema}.run r
 WHERE r.shard = :shard AND r.workspace = :workspace AND (:after = '' OR r.id < :after) AND r.status = :status
   AND r.status NOT IN ('COMPLETED', 'CANCELLED') AND (:definition = '' OR r.definition = :definition)
 ORDER BY r.id DESC
 LIMIT :limit
