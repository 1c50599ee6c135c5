-- Ends a hold: ?6 says how. 'done' keeps an answer; 'operation' points to where the
-- answer will be; 'commit' says that it is done before there is an answer, and until
-- when one may be expected; 'answer' then writes it.
-- ?1 shard, ?2 workspace, ?3 command, ?4 key, ?5 epoch, ?6 how, ?7 status,
-- ?8 answer, ?9 operation, ?10 subject, ?11 how long it is kept in ms
-- do
UPDATE holdfast_request AS r
   SET state = CASE WHEN ?6 = 'operation' THEN 'operation' ELSE 'done' END,
       holder = CASE WHEN ?6 = 'commit' THEN r.holder END, until = CASE WHEN ?6 = 'commit' THEN r.until END,
       status = ?7, answer = ?8, operation = ?9, subject = ?10, expires_at = {now} + ?11
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.key = ?4
   AND r.epoch = ?5
   AND CASE WHEN ?6 = 'answer' THEN r.state = 'done' AND r.status = 0
            ELSE r.state = 'held' AND r.until > {now} END
RETURNING state, epoch, coalesce(operation, ''), coalesce(subject, ''), coalesce(status, 0), coalesce(answer, '')
-- else
SELECT coalesce(r.state, ''), coalesce(r.epoch, 0), coalesce(r.operation, ''), coalesce(r.subject, ''),
       coalesce(r.status, 0), coalesce(r.answer, '')
  FROM (SELECT 1) LEFT JOIN holdfast_request AS r
    ON r.shard = ?1 AND r.workspace = ?2 AND r.key = ?4
