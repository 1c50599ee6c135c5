-- Points a request to another operation, if it still points to the one that is
-- named, and tells what was found.
-- ?1 shard, ?2 workspace, ?3 command, ?4 key, ?5 fingerprint, ?6 from,
-- ?7 operation, ?8 subject, ?9 how long it is kept in ms
-- do
UPDATE holdfast_request AS r
   SET operation = ?7, subject = ?8, expires_at = {now} + ?9
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.key = ?4
   AND r.state = 'operation' AND r.operation = ?6 AND r.fingerprint = ?5 AND r.expires_at > {now}
RETURNING state, fingerprint, operation, coalesce(subject, '')
-- else
SELECT coalesce(r.state, ''), coalesce(r.fingerprint, ''), coalesce(r.operation, ''), coalesce(r.subject, '')
  FROM (SELECT 1) LEFT JOIN holdfast_request AS r
    ON r.shard = ?1 AND r.workspace = ?2 AND r.key = ?4
