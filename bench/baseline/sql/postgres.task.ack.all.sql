-- A member: $1 shard, $2 workspace, $3 id of the event, $4 queue, $5 task,
-- $6 output, $7 epoch
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bigint[])
             WITH ORDINALITY AS m(shard, workspace, event, queue, task, output, epoch, member)
), moved AS (
    UPDATE {schema}.task k
       SET state = 'done', version = k.version + 1, output = m.output::json, error = NULL,
           due_at = clock_timestamp(), holder = NULL, until = NULL, updated_at = clock_timestamp()
      FROM m
     WHERE k.shard = m.shard AND k.workspace = m.workspace AND k.queue = m.queue AND k.id = m.task
       AND k.epoch = m.epoch AND k.until > clock_timestamp()
    RETURNING m.member, m.event, k.shard, k.workspace, k.queue, k.id, k.version, k.epoch, k.state, k.failures, k.updated_at
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT shard, event, 0, workspace, '$task/' || queue || '/' || id, version, 'settled',
           json_build_object('epoch', epoch, 'state', state, 'failures', failures), updated_at
      FROM moved
)
SELECT member, version FROM moved
