-- Returns a request, unless it has expired.
SELECT r.fingerprint, r.state, coalesce(r.holder, ''), r.epoch, coalesce(r.until, 0), coalesce(r.operation, ''), coalesce(r.subject, ''),
       coalesce(r.status, 0), coalesce(r.answer, ''), r.created_at, max(0, coalesce(r.until, 0) - {now})
  FROM holdfast_request AS r
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.key = :key
   AND (r.expires_at > {now} OR r.state = 'held' AND r.until > {now})
