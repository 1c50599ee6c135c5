-- Runs of a status that few have, the newest first: behind one, of a definition.
-- ?1 shard, ?2 workspace, ?3 behind ('' for none), ?4 status, ?5 definition ('' for any), ?6 limit
-- do
SELECT r.workspace, r.id, r.definition, coalesce(r.key, ''), r.status, r.version, r.input, r.state, r.memo, coalesce(r.output, ''), coalesce(r.error, ''),
       r.step, r.visit, r.cancel_requested, r.created_at, coalesce(r.started_at, 0), coalesce(r.finished_at, 0)
  FROM holdfast_run AS r INDEXED BY holdfast_run_live
 WHERE r.shard = ?1 AND r.workspace = ?2 AND (?3 = '' OR r.id < ?3) AND r.status = ?4
   AND r.status NOT IN ('COMPLETED', 'CANCELLED') AND (?5 = '' OR r.definition = ?5)
 ORDER BY r.id DESC
 LIMIT +?6
