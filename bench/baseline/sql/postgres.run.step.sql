-- Ends a step that is held, begins the next, held, or ends the run, and two events.
-- $1 shard, $2 workspace, $3 and $4 ids, $5 run, $6 step, $7 output, $8 next step ('' for the end), $9 holder, $10 lease in ms
WITH t AS MATERIALIZED (
    SELECT clock_timestamp() AS now
), done AS (
    UPDATE {schema}.step s
       SET status = 'COMPLETED', output = $7::json, holder = NULL, until = NULL, finished_at = t.now
      FROM t
     WHERE s.shard = $1::smallint AND s.workspace = $2::text AND s.run = $5::text AND s.name = $6::text AND s.visit = 1 AND s.epoch = 1 AND s.until > t.now
    RETURNING s.n
), moved AS (
    UPDATE {schema}.run r
       SET status = CASE WHEN $8::text = '' THEN 'COMPLETED' ELSE 'RUNNING' END, step = CASE WHEN $8 = '' THEN r.step ELSE $8 END, version = r.version + 2,
           output = $7::json, finished_at = CASE WHEN $8 = '' THEN t.now END, updated_at = t.now
      FROM t, done
     WHERE r.shard = $1 AND r.workspace = $2 AND r.id = $5 -- not done.run: joined, the planner may walk all runs
    RETURNING r.id, r.version, done.n
), added AS (
    INSERT INTO {schema}.step (shard, workspace, run, name, visit, n, type, handler, status, input, attempts, failures, holder, epoch, until, deaths, timeout, taken_at,
                               begun, uncertain, safety, unknown, created_at, started_at)
    SELECT $1, $2, moved.id, $8, 1, moved.n + 1, 'task', $8, 'RUNNING', $7::json, 1, 0, $9::text, 1, t.now + $10::bigint * interval '1 ms', 0, 900000, t.now, 0, false, '', '', t.now, t.now
      FROM t, moved
     WHERE $8 <> ''
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, at)
    SELECT $1, e.id, 0, $2, '$run/' || moved.id, moved.version + e.behind, e.name, json_build_object('step', $6, 'visit', 1, 'status', 'RUNNING'), t.now
      FROM t, moved, (VALUES ($3::uuid, -1, 'stepCompleted'), ($4::uuid, 0, 'stepStarted')) AS e(id, behind, name)
)
SELECT moved.version FROM moved
