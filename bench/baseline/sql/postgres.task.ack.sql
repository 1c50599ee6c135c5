-- $1 shard, $2 workspace, $3 id of the event, $4 queue, $5 task, $6 epoch, $7 output
WITH moved AS (
    UPDATE {schema}.task
       SET state = 'done', version = version + 1, output = $7::text::json, error = NULL,
           due_at = clock_timestamp(), holder = NULL, until = NULL, updated_at = clock_timestamp()
     WHERE shard = $1::smallint AND workspace = $2::text AND queue = $4::text AND id = $5::text
       AND epoch = $6::bigint AND until > clock_timestamp()
    RETURNING version, epoch, state, failures, updated_at
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, $3::uuid, 0, $2, '$task/' || $4 || '/' || $5, version, 'settled',
           json_build_object('epoch', epoch, 'state', state, 'failures', failures), updated_at
      FROM moved
)
SELECT version FROM moved
