-- A member: $1 shard, $2 workspace, $3 id of the event, $4 queue, $5 task, $6 input
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[])
             WITH ORDINALITY AS m(shard, workspace, event, queue, task, input, member)
), made AS (
    INSERT INTO {schema}.task
        (shard, workspace, queue, id, version, state, due_at, input, failures, epoch, deaths, created_at, updated_at)
    SELECT m.shard, m.workspace, m.queue, m.task, 0, 'due', t.now, m.input::json, 0, 0, 0, t.now, t.now
      FROM m, (SELECT clock_timestamp() AS now) AS t
    ON CONFLICT (shard, workspace, queue, id) DO NOTHING
    RETURNING shard, workspace, queue, id, version, created_at
), won AS (
    SELECT m.member, m.event, made.*
      FROM m JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.queue = m.queue AND made.id = m.task
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT shard, event, 0, workspace, '$task/' || queue || '/' || id, version, 'added', '{}', created_at
      FROM won
)
SELECT member, version FROM won
