-- Lists runs, the newest first: after a given one, of a status, of a definition.
-- :after a run ('' for none); :status ('' for any); :definition ('' for any)
SELECT r.workspace, r.id, r.definition, coalesce(r.key, ''), r.status, r.version, r.input{text}, r.state{text}, r.memo{text}, coalesce(r.output{text}, ''), coalesce(r.error, ''),
       r.step, r.visit, r.cancel_requested, r.created_at, coalesce(r.started_at, {no_time}), coalesce(r.finished_at, {no_time})
  FROM {schema}.run AS r
 WHERE r.shard = :shard AND r.workspace = :workspace AND (:after = '' OR r.id < :after) AND (:status = '' OR r.status = :status)
   AND (:definition = '' OR r.definition = :definition)
 ORDER BY r.id DESC
 LIMIT :limit
