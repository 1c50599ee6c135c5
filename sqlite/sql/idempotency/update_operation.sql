-- Points a request to another operation, if it still points to the named one, and returns
-- the stored request.
-- do
UPDATE holdfast_request AS r
   SET operation = :operation, subject = :subject, expires_at = {now} + :ttl
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.key = :key
   AND r.state = 'operation' AND r.operation = :was AND r.fingerprint = :fingerprint AND r.expires_at > {now}
RETURNING state, fingerprint, operation, coalesce(subject, '')
-- else
SELECT coalesce(r.state, ''), coalesce(r.fingerprint, ''), coalesce(r.operation, ''), coalesce(r.subject, '')
  FROM (SELECT 1) LEFT JOIN holdfast_request AS r
    ON r.shard = :shard AND r.workspace = :workspace AND r.key = :key
