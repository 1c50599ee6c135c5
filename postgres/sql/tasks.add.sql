-- Adds tasks, each with its first event, unless there is one.
-- $4 queue, $5 task, $6 input, $7 delay in ms
-- $8 revision, $9 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], $9::text[])
             WITH ORDINALITY AS m(shard, workspace, command, queue, task, input, delay, revision, marks, member)
     WHERE {known}
), t AS MATERIALIZED (
    SELECT {now} AS now
), made AS (
    INSERT INTO {schema}.task
        (shard, workspace, queue, id, version, state, due_at, input, failures, epoch, deaths, created_at, updated_at)
    SELECT m.shard, m.workspace, m.queue, m.task, 0, 'due', t.now + m.delay * interval '1 ms', m.input::json, 0, 0, 0, t.now, t.now
      FROM m, t
     WHERE CASE WHEN EXISTS (SELECT 1 FROM {schema}.task k WHERE k.shard = m.shard AND k.workspace = m.workspace
                                                             AND k.queue = m.queue AND k.id = m.task)
                THEN false
                ELSE {enter}(hashtextextended('task/' || m.shard || '/' || m.workspace || '/' || m.queue || '/' || m.task, 0)){entered} END
     ORDER BY m.shard, m.workspace, m.queue, m.task
    ON CONFLICT (shard, workspace, queue, id) DO NOTHING
    RETURNING shard, workspace, queue, id, created_at
), won AS (
    SELECT m.member, m.shard, m.workspace, m.command, m.queue, m.task, made.created_at
      FROM m JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.queue = m.queue AND made.id = m.task
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT won.shard, won.command, 0, won.workspace, '$task/' || won.queue || '/' || won.task, 0, 'added', '{}', won.created_at
      FROM won
    RETURNING shard, id, workspace, stream, version
){mark}
SELECT m.member, CASE WHEN won.member IS NOT NULL THEN 1 WHEN k.id IS NOT NULL THEN 0 ELSE 2 END,
       coalesce(k.state, 'due'), coalesce(k.version, 0), coalesce(k.epoch, 0), coalesce(k.failures, 0), coalesce(k.deaths, 0),
       coalesce(k.output::text, ''), coalesce(k.error, '')
  FROM m
  LEFT JOIN won ON won.member = m.member
  LEFT JOIN {schema}.task k ON k.shard = m.shard AND k.workspace = m.workspace AND k.queue = m.queue AND k.id = m.task
