-- Tells a request, unless its time is over.
-- $1 shard, $2 workspace, $3 key
SELECT r.fingerprint, r.state, coalesce(r.holder, ''), r.epoch, coalesce(r.until, 'epoch'), coalesce(r.operation, ''), coalesce(r.subject, ''),
       coalesce(r.status, 0), coalesce(r.answer, ''), r.created_at,
       greatest(0, pg_catalog.ceil(extract(epoch FROM coalesce(r.until, 'epoch') - {now}) * 1000::numeric))::bigint
  FROM {schema}.request r
 WHERE r.shard = $1::smallint AND r.workspace = $2::text AND r.key = $3::text
   AND (r.expires_at > {now} OR r.state = 'held' AND r.until > {now})
