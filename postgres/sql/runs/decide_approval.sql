-- Decides an approval that is pending and has not expired, and makes its step due. Locks
-- run, step and approval, in this order.
WITH {members}, cur AS MATERIALIZED (
    SELECT m.member, r.shard, r.workspace, r.id AS run, r.version, m.approval, m.step, m.visit, m.decision, m.actor, m.label, m.content
      FROM m JOIN {schema}.run r ON r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.id = m.run
       FOR UPDATE OF r
), st AS MATERIALIZED (
    SELECT cur.member, s.status
      FROM cur CROSS JOIN LATERAL (
           SELECT s.status FROM {schema}.step s
            WHERE s.shard = cur.shard AND s.workspace = cur.workspace AND s.run = cur.run AND s.name = cur.step AND s.visit = cur.visit
              FOR UPDATE) AS s
), ap AS MATERIALIZED (
    SELECT cur.member, st.status AS step, a.status, a.expires_at
      FROM cur JOIN st ON st.member = cur.member CROSS JOIN LATERAL (
           SELECT a.status, a.expires_at FROM {schema}.approval a
            WHERE a.shard = cur.shard AND a.workspace = cur.workspace AND a.run = cur.run AND a.step = cur.step AND a.visit = cur.visit
              FOR UPDATE) AS a
), t AS MATERIALIZED (
    SELECT {now} AS now, pg_catalog.count(*) FROM ap
), ok AS MATERIALIZED (
    SELECT cur.*
      FROM t, cur JOIN ap ON ap.member = cur.member
     WHERE ap.status = 'pending' AND ap.step = 'WAITING' AND (ap.expires_at IS NULL OR ap.expires_at > t.now)
), decided AS (
    UPDATE {schema}.approval a
       SET status = ok.decision, actor = ok.actor, label = ok.label, content = ok.content::json, decided_at = t.now
      FROM t, ok
     WHERE a.shard = ANY (ARRAY[ok.shard]) AND a.workspace = ok.workspace AND a.run = ok.run AND a.step = ok.step AND a.visit = ok.visit
), due_step AS (
    UPDATE {schema}.step s
       SET due_at = t.now
      FROM t, ok
     WHERE s.shard = ANY (ARRAY[ok.shard]) AND s.workspace = ok.workspace AND s.run = ok.run AND s.name = ok.step AND s.visit = ok.visit
), moved AS (
    UPDATE {schema}.run r
       SET version = ok.version + 1, updated_at = t.now
      FROM t, ok
     WHERE r.shard = ANY (ARRAY[ok.shard]) AND r.workspace = ok.workspace AND r.id = ok.run
    RETURNING ok.member, r.version
), written AS (
    INSERT INTO {schema}.history (shard, id, n, workspace, stream, version, name, data, actor, at)
    SELECT m.shard, m.command, 0, m.workspace, '$run/' || ok.run, moved.version, 'approvalDecided',
           pg_catalog.json_build_object('approval', ok.approval, 'step', ok.step, 'visit', ok.visit, 'decision', ok.decision, 'by', ok.actor), ok.actor, t.now
      FROM t, m JOIN ok ON ok.member = m.member JOIN moved ON moved.member = m.member
    {due_notices}
SELECT m.member, CASE WHEN moved.member IS NOT NULL THEN 1 ELSE 0 END, coalesce(ap.status, ''), coalesce(moved.version, cur.version, -1)
  FROM m LEFT JOIN cur ON cur.member = m.member
  LEFT JOIN ap ON ap.member = m.member
  LEFT JOIN moved ON moved.member = m.member
