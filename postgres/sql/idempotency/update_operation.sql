-- Points requests to another operation, each if it still points to the named one, and
-- returns the stored request. The row is locked first, so that the returned row is the one
-- that decided.
-- :ttl the retention in ms
WITH {members}, cur AS (
    SELECT r.shard, r.workspace, r.key, r.fingerprint, r.state, r.epoch, r.operation, r.subject, r.expires_at
      {include idempotency/lock}
), moved AS (
    UPDATE {schema}.request r
       SET operation = m.operation, subject = m.subject, expires_at = {now} + m.ttl::float8 * interval '1 ms'
      FROM m JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.key = m.key
     WHERE r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.key = m.key
       AND cur.state = 'operation' AND cur.operation = m.was AND cur.fingerprint = m.fingerprint AND cur.expires_at > {now}
       AND r.epoch = cur.epoch
    RETURNING m.member
)
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1 ELSE 0 END,
       coalesce(cur.state, ''), coalesce(cur.fingerprint, ''), coalesce(cur.operation, ''), coalesce(cur.subject, '')
  FROM m LEFT JOIN moved ON moved.member = m.member
  LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.key = m.key
