-- Ends the lease of a request; :how selects the outcome.
-- do
UPDATE holdfast_request AS r
   SET state = CASE WHEN :how = 'operation' THEN 'operation' ELSE 'done' END,
       holder = CASE WHEN :how = 'commit' THEN r.holder END, until = CASE WHEN :how = 'commit' THEN r.until END,
       status = :status, answer = :answer, operation = :operation, subject = :subject, expires_at = {now} + :ttl
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.key = :key
   AND r.epoch = :epoch
   AND CASE WHEN :how = 'answer' THEN r.state = 'done' AND r.status = 0
            ELSE r.state = 'held' AND r.until > {now} END
RETURNING state, epoch, coalesce(operation, ''), coalesce(subject, ''), coalesce(status, 0), coalesce(answer, '')
-- else
SELECT coalesce(r.state, ''), coalesce(r.epoch, 0), coalesce(r.operation, ''), coalesce(r.subject, ''),
       coalesce(r.status, 0), coalesce(r.answer, '')
  FROM (SELECT 1) LEFT JOIN holdfast_request AS r
    ON r.shard = :shard AND r.workspace = :workspace AND r.key = :key
