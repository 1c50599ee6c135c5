-- Completes one step under its lease, and moves its run. Other CTEs follow, then runs/finish_one_written.
-- {1} is the number of events without then_event, {2} with it. {3} and {4} are the step and the visit that
-- the run is at then, or NULL for those that it is at.
WITH cur AS MATERIALIZED (
    SELECT 1
      FROM {schema}.run r
     WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run AND r.version = :version
       AND {include registry/is_current}
       FOR UPDATE
), t AS MATERIALIZED (
    SELECT {now} AS now, pg_catalog.count(*) AS n FROM cur
), ok AS (
    UPDATE {schema}.run r
       SET version = :version + CASE WHEN :then_event IS NULL THEN {1} ELSE {2} END, status = :status, step = coalesce({3}, r.step), visit = coalesce({4}, r.visit),
           state = coalesce(:state::json, r.state), memo = :memo::json, output = coalesce(:result::json, r.output), error = NULL,
           started_at = coalesce(r.started_at, t.now), finished_at = CASE :ended WHEN 1 THEN t.now END,
           prune_at = CASE :ended WHEN 1 THEN t.now + :keep::float8 * interval '1 ms' END, updated_at = t.now
      FROM t
     WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run AND t.n = 1
       AND EXISTS (SELECT 1 FROM {schema}.step s
                    WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit AND s.epoch = :epoch AND s.until > t.now)
    RETURNING r.version, r.updated_at AS now
), finished AS (
    UPDATE {schema}.step s
       SET status = 'COMPLETED', output = :output::json, error = NULL, next = :next, quiet = false, lost = 0, holder = NULL, until = NULL, due_at = NULL, later = NULL,
           uncertain = false, finished_at = ok.now
      FROM ok
     WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit
)
