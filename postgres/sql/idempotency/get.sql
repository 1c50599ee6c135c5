-- Returns a request, unless it has expired.
SELECT r.fingerprint, r.state, coalesce(r.holder, ''), r.epoch, coalesce(r.until, 'epoch'), coalesce(r.operation, ''), coalesce(r.subject, ''),
       coalesce(r.status, 0), coalesce(r.answer, ''), r.created_at,
       greatest(0, pg_catalog.ceil(extract(epoch FROM coalesce(r.until, 'epoch') - {now}) * 1000::numeric))::bigint
  FROM {schema}.request r
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.key = :key
   AND (r.expires_at > {now} OR r.state = 'held' AND r.until > {now})
