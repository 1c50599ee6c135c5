-- Ends holds that have not run out: $6 says how. 'done' keeps the output,
-- 'release' frees the task unchanged, 'fail' counts a failure and frees it, or
-- ends it as failed where the failures exceed the retries. Rows are locked
-- first, and the time is looked at afterwards: a holder whose statement waited
-- past its end has lost.
-- $4 queue, $5 task, $6 how, $7 epoch, $8 output, $9 error, $10 delay in ms,
-- $11 retries
-- $12 revision, $13 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bigint[],
                         $8::text[], $9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[])
             WITH ORDINALITY AS m(shard, workspace, command, queue, task, how, epoch, output, error, delay, retries, revision, marks, member)
     WHERE {known}
), cur AS (
    SELECT k.shard, k.workspace, k.queue, k.id, k.state, k.version, k.epoch, k.until, k.failures, k.deaths, k.output, k.error
      FROM m JOIN {schema}.task k
        ON k.shard = m.shard AND k.workspace = m.workspace AND k.queue = m.queue AND k.id = m.task
     ORDER BY k.shard, k.workspace, k.queue, k.id
       FOR UPDATE OF k{skip}
), moved AS (
    UPDATE {schema}.task k
       SET state = CASE WHEN m.how = 'done' THEN 'done'
                        WHEN m.how = 'fail' AND cur.failures + 1 > m.retries THEN 'failed'
                        ELSE 'due' END,
           failures = cur.failures + CASE WHEN m.how = 'fail' THEN 1 ELSE 0 END,
           version = cur.version + 1, output = m.output::json, error = m.error,
           due_at = {now} + m.delay * interval '1 ms', holder = NULL, until = NULL, updated_at = {now}
      FROM m JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.queue = m.queue AND cur.id = m.task
     WHERE k.shard = m.shard AND k.workspace = m.workspace AND k.queue = m.queue AND k.id = m.task
       AND cur.epoch = m.epoch AND cur.until > {now}
       AND k.epoch = m.epoch
    RETURNING m.member, k.state, k.version, k.epoch, k.failures, k.deaths, k.output, k.error, k.updated_at
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT m.shard, m.command, 0, m.workspace, '$task/' || m.queue || '/' || m.task, moved.version,
           CASE m.how WHEN 'done' THEN 'settled' WHEN 'fail' THEN 'failed' ELSE 'released' END,
           json_build_object('epoch', m.epoch, 'state', moved.state, 'failures', moved.failures), moved.updated_at
      FROM m JOIN moved ON moved.member = m.member
    RETURNING shard, id, workspace, stream, version
){mark}
SELECT m.member,
       CASE WHEN moved.member IS NOT NULL THEN 1
            WHEN cur.id IS NULL AND EXISTS (SELECT 1 FROM {schema}.task k WHERE k.shard = m.shard AND k.workspace = m.workspace
                                                                           AND k.queue = m.queue AND k.id = m.task) THEN 2
            ELSE 0 END,
       coalesce(moved.state, cur.state, ''), coalesce(moved.version, cur.version, -1), coalesce(moved.epoch, cur.epoch, 0),
       coalesce(moved.failures, cur.failures, 0), coalesce(moved.deaths, cur.deaths, 0),
       CASE WHEN moved.member IS NOT NULL THEN coalesce(moved.output::text, '') ELSE coalesce(cur.output::text, '') END,
       CASE WHEN moved.member IS NOT NULL THEN coalesce(moved.error, '') ELSE coalesce(cur.error, '') END
  FROM m
  LEFT JOIN moved ON moved.member = m.member
  LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.queue = m.queue AND cur.id = m.task
