-- Runs, the newest first: behind one, of a status, of a definition.
-- $1 shard, $2 workspace, $3 behind ('' for none), $4 status ('' for any), $5 definition ('' for any), $6 limit
SELECT r.workspace, r.id, r.definition, coalesce(r.key, ''), r.status, r.version, r.input::text, r.state::text, r.memo::text, coalesce(r.output::text, ''), coalesce(r.error, ''),
       r.step, r.visit, r.cancel_requested, r.created_at, coalesce(r.started_at, 'epoch'), coalesce(r.finished_at, 'epoch')
  FROM {schema}.run r
 WHERE r.shard = $1::smallint AND r.workspace = $2::text AND ($3::text = '' OR r.id < $3) AND ($4::text = '' OR r.status = $4)
   AND ($5::text = '' OR r.definition = $5)
 ORDER BY r.id DESC
 LIMIT $6::bigint
