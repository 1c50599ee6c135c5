-- Inserts the runs of the members. Other CTEs follow, then runs/start_written.
WITH {members}, {include store/time}, made AS (
    INSERT INTO {schema}.run
        (shard, workspace, id, definition, key, status, version, input, state, memo, step, visit, cancel_requested, created_at, started_at, updated_at)
    SELECT m.shard, m.workspace, m.run, m.definition, m.key, m.status, CASE WHEN m.then_event IS NULL THEN 0 ELSE 1 END, m.input::json, m.state::json, m.memo::json,
           m.begin, m.begin_visit, false, t.now, CASE WHEN m.status <> 'PENDING' THEN t.now END, t.now
      FROM t, m
     WHERE m.key IS NULL
        OR CASE WHEN EXISTS (SELECT 1 FROM {schema}.run r WHERE r.shard = m.shard AND r.workspace = m.workspace AND r.key = m.key)
                THEN false
                ELSE {enter}({include runs/key_lock m.}){entered} END
     ORDER BY m.shard, m.workspace, m.key
    ON CONFLICT (shard, workspace, key) WHERE key IS NOT NULL DO NOTHING
    RETURNING shard, workspace, id
), ok AS MATERIALIZED (
    SELECT m.*, t.now
      FROM t, m JOIN made ON made.shard = m.shard AND made.workspace = m.workspace AND made.id = m.run
)
