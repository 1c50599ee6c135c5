-- Frees holds that have run out, and counts the death of each holder; the last
-- one allowed ends the task.
-- $4 queue, $5 task, $6 epoch, $7 deaths allowed
-- $8 revision, $9 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::text[])
             WITH ORDINALITY AS m(shard, workspace, command, queue, task, epoch, allowed, revision, marks, member)
     WHERE {known}
), cur AS (
    SELECT k.shard, k.workspace, k.queue, k.id, k.state, k.version, k.epoch, k.until, k.holder, k.failures, k.deaths, k.output, k.error
      FROM m JOIN {schema}.task k
        ON k.shard = m.shard AND k.workspace = m.workspace AND k.queue = m.queue AND k.id = m.task
     ORDER BY k.shard, k.workspace, k.queue, k.id
       FOR UPDATE OF k{skip}
), moved AS (
    UPDATE {schema}.task k
       SET state = CASE WHEN cur.deaths + 1 >= m.allowed THEN 'dead' ELSE 'due' END,
           deaths = cur.deaths + 1, version = cur.version + 1, due_at = {now},
           error = 'the holder ' || cur.holder || ' did not come back',
           holder = NULL, until = NULL, updated_at = {now}
      FROM m JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.queue = m.queue AND cur.id = m.task
     WHERE k.shard = m.shard AND k.workspace = m.workspace AND k.queue = m.queue AND k.id = m.task
       AND cur.epoch = m.epoch AND cur.holder IS NOT NULL AND cur.until <= {now}
       AND k.epoch = m.epoch
    RETURNING m.member, k.state, k.version, k.epoch, k.failures, k.deaths, k.output, k.error, k.updated_at
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT m.shard, m.command, 0, m.workspace, '$task/' || m.queue || '/' || m.task, moved.version, 'died',
           json_build_object('epoch', m.epoch, 'state', moved.state, 'deaths', moved.deaths), moved.updated_at
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
       coalesce(moved.output::text, cur.output::text, ''), coalesce(moved.error, cur.error, '')
  FROM m
  LEFT JOIN moved ON moved.member = m.member
  LEFT JOIN cur ON cur.shard = m.shard AND cur.workspace = m.workspace AND cur.queue = m.queue AND cur.id = m.task
