-- Completes the steps of the members under their leases, and moves their runs. Other CTEs follow, then runs/finish_written.
-- {1} is the number of events of a member without then_event, {2} with it. {3} and {4} are the step and the visit that
-- the run is at then, or NULL for those that it is at.
WITH {members}, cur AS MATERIALIZED (
    SELECT m.*, r.version AS found
      FROM m JOIN {schema}.run r ON r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.id = m.run
     ORDER BY m.shard, r.workspace, r.id
       FOR UPDATE OF r{skip}
), st AS MATERIALIZED (
    SELECT cur.member, s.epoch, s.until
      FROM cur CROSS JOIN LATERAL (
           SELECT s.epoch, s.until FROM {schema}.step s
            WHERE s.shard = cur.shard AND s.workspace = cur.workspace AND s.run = cur.run AND s.name = cur.step AND s.visit = cur.visit
              FOR UPDATE{skip}) AS s
), t AS MATERIALIZED (
    SELECT {now} AS now, pg_catalog.count(*) FROM st
), ok AS MATERIALIZED (
    SELECT cur.*, t.now
      FROM t, cur JOIN st ON st.member = cur.member
     WHERE cur.found = cur.version AND st.epoch = cur.epoch AND st.until > t.now
), moved AS (
    UPDATE {schema}.run r
       SET version = ok.version + CASE WHEN ok.then_event IS NULL THEN {1} ELSE {2} END, status = ok.status, step = coalesce({3}, r.step), visit = coalesce({4}, r.visit),
           state = coalesce(ok.state::json, r.state), memo = ok.memo::json, output = coalesce(ok.result::json, r.output), error = NULL,
           started_at = coalesce(r.started_at, ok.now), finished_at = CASE ok.ended WHEN 1 THEN ok.now END,
           prune_at = CASE ok.ended WHEN 1 THEN ok.now + ok.keep::float8 * interval '1 ms' END, updated_at = ok.now
      FROM ok
     WHERE r.shard = ANY (ARRAY[ok.shard]) AND r.workspace = ok.workspace AND r.id = ok.run
), finished AS (
    UPDATE {schema}.step s
       SET status = 'COMPLETED', output = ok.output::json, error = NULL, next = ok.next, quiet = false, lost = 0, holder = NULL, until = NULL, due_at = NULL, later = NULL,
           uncertain = false, finished_at = ok.now
      FROM ok
     WHERE s.shard = ANY (ARRAY[ok.shard]) AND s.workspace = ok.workspace AND s.run = ok.run AND s.name = ok.step AND s.visit = ok.visit
)
