-- Ends leases of requests. :how is 'done', which stores a response; 'operation', which
-- points to the operation that will have the response; 'commit', which records that the
-- request is done before there is a response, and until when one may be expected; or
-- 'answer', which then stores it. Rows are locked first, and the time is read afterwards: a
-- holder that waited past its expiry has lost the lease.
WITH {members}, cur AS (
    SELECT r.shard, r.workspace, r.key, r.state, r.holder, r.epoch, r.until, r.operation, r.subject, r.status, r.answer
      {include idempotency/lock}
), moved AS (
    UPDATE {schema}.request r
       SET state = CASE WHEN m.how = 'operation' THEN 'operation' ELSE 'done' END,
           holder = CASE WHEN m.how = 'commit' THEN cur.holder END, until = CASE WHEN m.how = 'commit' THEN cur.until END,
           status = m.status, answer = m.answer, operation = m.operation, subject = m.subject,
           expires_at = {now} + m.ttl::float8 * interval '1 ms'
      FROM m JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.key = m.key
     WHERE r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.key = m.key
       AND cur.epoch = m.epoch
       AND CASE WHEN m.how = 'answer' THEN cur.state = 'done' AND cur.status = 0
                ELSE cur.state = 'held' AND cur.until > {now} END
       AND r.epoch = m.epoch
    RETURNING m.member
)
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1 ELSE 0 END,
       coalesce(cur.state, ''), coalesce(cur.epoch, 0), coalesce(cur.operation, ''), coalesce(cur.subject, ''),
       coalesce(cur.status, 0), coalesce(cur.answer, '')
  FROM m LEFT JOIN moved ON moved.member = m.member
  LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.key = m.key
