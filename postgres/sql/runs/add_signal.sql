-- Adds a signal to the inbox of a run that is not finished, unless it is there already, and
-- makes the step due that waits for it. Locks run and step, in this order. A statement that
-- waited for the run does not see a step added meanwhile: the run's current step differs,
-- and the caller retries.
WITH {members}, cur AS MATERIALIZED (
    SELECT m.member, r.shard, r.workspace, r.id AS run, r.version, r.status, r.step, r.visit, m.id, m.type, m.payload
      FROM m JOIN {schema}.run r ON r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.id = m.run
       FOR UPDATE OF r
), seen AS (
    SELECT m.member, r.step, r.visit
      FROM m JOIN {schema}.run r ON r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.id = m.run
), t AS MATERIALIZED (
    SELECT {now} AS now, pg_catalog.count(*) FROM cur
), put AS (
    INSERT INTO {schema}.signal (shard, workspace, run, id, n, type, payload, at)
    SELECT cur.shard, cur.workspace, cur.run, cur.id, cur.version + 1, cur.type, cur.payload::json, t.now
      FROM t, cur JOIN seen ON seen.member = cur.member AND seen.step = cur.step AND seen.visit = cur.visit
     WHERE cur.status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')
    ON CONFLICT (shard, workspace, run, id) DO NOTHING
    RETURNING shard, workspace, run, id, type
), ok AS MATERIALIZED (
    SELECT cur.member, cur.shard, cur.workspace, cur.run, cur.version, cur.step, cur.visit, cur.id, cur.type
      FROM cur JOIN put ON put.shard = cur.shard AND put.workspace = cur.workspace AND put.run = cur.run AND put.id = cur.id
), moved AS (
    UPDATE {schema}.run r
       SET version = ok.version + 1, updated_at = t.now
      FROM t, ok
     WHERE r.shard = ANY (ARRAY[ok.shard]) AND r.workspace = ok.workspace AND r.id = ok.run
    RETURNING ok.member, r.version
), st AS MATERIALIZED ( -- locked, and so read as it is now
    SELECT ok.member, s.status, s.signal
      FROM ok CROSS JOIN LATERAL (
           SELECT s.status, s.signal FROM {schema}.step s
            WHERE s.shard = ok.shard AND s.workspace = ok.workspace AND s.run = ok.run AND s.name = ok.step AND s.visit = ok.visit
              FOR UPDATE) AS s
), due_step AS (
    UPDATE {schema}.step s
       SET due_at = t.now
      FROM t, ok JOIN st ON st.member = ok.member
     WHERE s.shard = ANY (ARRAY[ok.shard]) AND s.workspace = ok.workspace AND s.run = ok.run AND s.name = ok.step AND s.visit = ok.visit
       AND st.status = 'WAITING' AND st.signal = ok.type
), {include history/write}
    SELECT m.shard, m.command, 0, m.workspace, '$run/' || ok.run, moved.version, 'signalled', pg_catalog.json_build_object('id', ok.id, 'type', ok.type), NULL, NULL, m.actor, t.now
      FROM t, m JOIN ok ON ok.member = m.member JOIN moved ON moved.member = m.member
    {due_notices}
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1 WHEN (cur.step, cur.visit) <> (seen.step, seen.visit) THEN 2 ELSE 0 END, coalesce(cur.status, ''), coalesce(g.type, ''), coalesce(g.payload::text, ''), coalesce(moved.version, cur.version, -1)
  FROM m LEFT JOIN cur ON cur.member = m.member
  LEFT JOIN seen ON seen.member = m.member
  LEFT JOIN moved ON moved.member = m.member
  LEFT JOIN {schema}.signal g ON g.shard = ANY (ARRAY[m.shard]) AND g.workspace = m.workspace AND g.run = m.run AND g.id = m.id
