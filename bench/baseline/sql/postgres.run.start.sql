-- A run with its first step, held, and two events.
-- $1 shard, $2 workspace, $3 and $4 ids, $5 run, $6 key, $7 input, $8 step, $9 holder, $10 lease in ms
WITH t AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), made AS (
    INSERT INTO {schema}.run (shard, workspace, id, definition, key, status, version, input, state, memo, step, visit, cancel_requested, created_at, started_at, updated_at)
    SELECT $1::smallint, $2::text, $5::text, 'five@1', $6::text, 'RUNNING', 1, $7::json, '{}', '{}', $8::text, 1, false, t.now, t.now, t.now FROM t
    ON CONFLICT (shard, workspace, key) WHERE key IS NOT NULL DO NOTHING
    RETURNING id
), added AS (
    INSERT INTO {schema}.step (shard, workspace, run, name, visit, n, type, handler, status, input, attempts, failures, holder, epoch, until, deaths, timeout, taken_at,
                               begun, uncertain, safety, unknown, created_at, started_at)
    SELECT $1, $2, made.id, $8, 1, 1, 'task', $8, 'RUNNING', $7::json, 1, 0, $9::text, 1, t.now + $10::bigint * interval '1 ms', 0, 900000, t.now, 0, false, '', '', t.now, t.now
      FROM t, made
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, e.id, 0, $2, '$run/' || made.id, e.version, e.name, json_build_object('step', $8, 'visit', 1, 'status', 'RUNNING'), t.now
      FROM t, made, (VALUES ($3::uuid, 0, 'created'), ($4::uuid, 1, 'stepStarted')) AS e(id, version, name)
)
SELECT 1::bigint FROM made
