-- Tells a request, unless its time is over.
-- ?1 shard, ?2 workspace, ?3 key
-- do
SELECT r.fingerprint, r.state, coalesce(r.holder, ''), r.epoch, coalesce(r.until, 0), coalesce(r.operation, ''), coalesce(r.subject, ''),
       coalesce(r.status, 0), coalesce(r.answer, ''), r.created_at, max(0, coalesce(r.until, 0) - {now})
  FROM holdfast_request AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.key = ?3
   AND (r.expires_at > {now} OR r.state = 'held' AND r.until > {now})
