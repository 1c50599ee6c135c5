-- Inserts one run. Other CTEs follow, then runs/start_one_written.
WITH ok AS (
    INSERT INTO {schema}.run
        (shard, workspace, id, definition, key, status, version, input, state, memo, step, visit, cancel_requested, created_at, started_at, updated_at)
    SELECT :shard, :workspace, :run, :definition, :key, :status, CASE WHEN :then_event IS NULL THEN 0 ELSE 1 END, :input::json, :state::json, :memo::json,
           :begin, :begin_visit, false, t.now, CASE WHEN :status <> 'PENDING' THEN t.now END, t.now
      FROM (SELECT {now} AS now) AS t
     WHERE {include registry/is_current}
       AND (:key IS NULL
            OR CASE WHEN EXISTS (SELECT 1 FROM {schema}.run r WHERE r.shard = :shard AND r.workspace = :workspace AND r.key = :key)
                    THEN false
                    ELSE pg_catalog.pg_advisory_xact_lock({include runs/key_lock :})::text IS NOT NULL END)
    ON CONFLICT (shard, workspace, key) WHERE key IS NOT NULL DO NOTHING
    RETURNING version, created_at AS now
)
