-- Ends an item that is held, with its output.
-- $1 shard, $2 workspace, $3 id of the event, $4 batch, $5 key, $6 epoch, $7 output
WITH ended AS (
    UPDATE {schema}.item
       SET state = 'succeeded', output = $7::text::json, holder = NULL, until = NULL, updated_at = clock_timestamp()
     WHERE shard = $1::smallint AND workspace = $2::text AND batch = $4::text AND key = $5::text
       AND state = 'running' AND epoch = $6::bigint AND until > clock_timestamp()
    RETURNING state, failures, deaths, updated_at
), moved AS (
    UPDATE {schema}.batch c
       SET running = c.running - 1, succeeded = c.succeeded + 1, version = c.version + 1, updated_at = ended.updated_at
      FROM ended
     WHERE c.shard = $1 AND c.workspace = $2 AND c.id = $4
    RETURNING c.version, c.items - c.next + c.waiting AS pending, c.running, c.succeeded, c.failed, c.cancelled, c.accepted
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, $3::uuid, 0, $2, '$batch/' || $4, moved.version, 'itemSucceeded',
           json_build_object('key', $5, 'state', ended.state, 'failures', ended.failures, 'deaths', ended.deaths, 'over', false,
                             'counts', json_build_object('pending', moved.pending, 'running', moved.running, 'succeeded', moved.succeeded,
                                                         'failed', moved.failed, 'cancelled', moved.cancelled, 'accepted', moved.accepted)),
           ended.updated_at
      FROM moved, ended
)
SELECT version FROM moved
