-- Moves runs, each by a plan, if the run is at the version of the plan and its step is as
-- the plan expects (:how): leased under an epoch and not expired ('held'), leased and
-- expired ('died'), due and not leased ('due'), or in any state (''). Locks run and step, in
-- this order, and reads the time afterwards: a holder that waited past its expiry has lost
-- the lease. A plan that depends on the effects begun or open, or on the operation fired
-- (saw), is refused with the version -1 if these have changed, because they do not change
-- the run's version. Effects are locked after their step, and so are counted as they are now.
WITH {members}, cur AS MATERIALIZED (
    SELECT m.member, r.shard, r.workspace, r.id AS run, r.version, r.status, m.version AS want, m.how, m.step, m.visit, m.epoch, m.holder, m.lease, m.plan
      FROM m JOIN {schema}.run r ON r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.id = m.run
     ORDER BY m.shard, r.workspace, r.id
       FOR UPDATE OF r{skip}
), st AS MATERIALIZED (
    SELECT cur.member, s.epoch, s.status, s.until, s.due_at,
           s.begun <> (cur.plan::json #>> '{saw,begun}'::text[])::bigint OR coalesce(s.fired, '') <> cur.plan::json #>> '{saw,fired}'::text[]
           OR CASE WHEN cur.plan::json #>> '{saw,open}'::text[] IS NOT NULL THEN (cur.plan::json #>> '{saw,open}'::text[])::bigint <> (
                        SELECT pg_catalog.count(*) FROM (SELECT 1 FROM {schema}.effect x
                                               WHERE x.shard = ANY (ARRAY[cur.shard]) AND x.workspace = cur.workspace AND x.operation = cur.run || '/' || cur.step || '/' || cur.visit::text
                                                 AND x.state = 'begun'
                                                 FOR SHARE) AS o) END AS changed
      FROM cur CROSS JOIN LATERAL (
           SELECT s.epoch, s.status, s.until, s.due_at, s.begun, s.fired FROM {schema}.step s
            WHERE s.shard = cur.shard AND s.workspace = cur.workspace AND s.run = cur.run AND s.name = cur.step AND s.visit = cur.visit
              FOR UPDATE{skip}) AS s
), t AS MATERIALIZED (
    SELECT {now} AS now, pg_catalog.count(*) FROM st
), ok AS MATERIALIZED (
    SELECT cur.member, cur.shard, cur.workspace, cur.run, cur.version, cur.step, cur.visit, cur.holder, cur.lease, cur.plan::json AS plan
      FROM t, cur JOIN st ON st.member = cur.member
     WHERE cur.version = cur.want AND st.epoch = cur.epoch AND st.changed IS NOT TRUE
       AND CASE cur.how WHEN 'held' THEN coalesce(st.until > t.now, false)
                        WHEN 'died' THEN coalesce(st.until <= t.now, false)
                        WHEN 'due' THEN coalesce(st.due_at <= t.now, false)
                        ELSE true END
), moved AS (
    UPDATE {schema}.run r
       SET version = ok.version + pg_catalog.json_array_length(ok.plan -> 'events'::text), status = ok.plan -> 'run'::text ->> 'status'::text, step = ok.plan -> 'run'::text ->> 'step'::text,
           visit = (ok.plan -> 'run'::text ->> 'visit'::text)::bigint, state = coalesce(ok.plan -> 'run'::text -> 'state'::text, r.state), memo = coalesce(ok.plan -> 'run'::text -> 'memo'::text, r.memo),
           output = coalesce(ok.plan -> 'run'::text -> 'output'::text, r.output), error = ok.plan -> 'run'::text ->> 'error'::text,
           cancel_requested = (ok.plan -> 'run'::text ->> 'cancel'::text)::boolean,
           started_at = coalesce(r.started_at, CASE WHEN ok.plan -> 'run'::text ->> 'status'::text NOT IN ('PENDING', 'CANCELLED') THEN t.now END),
           finished_at = CASE WHEN (ok.plan -> 'run'::text ->> 'over'::text)::boolean THEN t.now END,
           prune_at = CASE WHEN (ok.plan -> 'run'::text ->> 'over'::text)::boolean THEN t.now + (ok.plan -> 'run'::text ->> 'keep'::text)::bigint::float8 * interval '1 ms' END, updated_at = t.now
      FROM t, ok
     WHERE r.shard = ANY (ARRAY[ok.shard]) AND r.workspace = ok.workspace AND r.id = ok.run
    RETURNING ok.member, r.version, r.status
), recorded AS (
    UPDATE {schema}.effect x
       SET state = e.v ->> 's'::text, result = e.v -> 'r'::text, ended_at = t.now
      FROM t, ok CROSS JOIN LATERAL pg_catalog.json_array_elements(ok.plan -> 'results'::text) AS e(v)
     WHERE x.shard = ANY (ARRAY[ok.shard]) AND x.workspace = ok.workspace AND x.operation = ok.run || '/' || ok.step || '/' || ok.visit::text
       AND x.name = e.v ->> 'n'::text AND x.ordinal = (e.v ->> 'o'::text)::integer AND x.state = 'begun'
    RETURNING ok.member, x.state
), {include runs/begin_body}, touched AS (
    UPDATE {schema}.step s
       SET status = x.v ->> 'status'::text, output = coalesce(x.v -> 'output'::text, s.output), error = x.v ->> 'error'::text, next = x.v ->> 'next'::text,
           attempts = (x.v ->> 'attempts'::text)::bigint, failures = (x.v ->> 'failures'::text)::bigint, deaths = (x.v ->> 'deaths'::text)::bigint,
           quiet = (x.v ->> 'quiet'::text)::boolean, lost = (x.v ->> 'lost'::text)::bigint,
           safety = coalesce(x.v ->> 'safety'::text, s.safety), unknown = coalesce(x.v ->> 'unknown'::text, s.unknown), timeout = coalesce((x.v ->> 'timeout'::text)::bigint, s.timeout),
           holder = CASE x.v ->> 'hold'::text WHEN 'take' THEN ok.holder WHEN 'keep' THEN s.holder END,
           epoch = s.epoch + CASE x.v ->> 'hold'::text WHEN 'take' THEN 1 ELSE 0 END,
           until = CASE x.v ->> 'hold'::text WHEN 'take' THEN t.now + least(ok.lease, coalesce((x.v ->> 'timeout'::text)::bigint, s.timeout))::float8 * interval '1 ms' WHEN 'keep' THEN s.until END,
           taken_at = CASE x.v ->> 'hold'::text WHEN 'take' THEN t.now ELSE s.taken_at END,
           due_at = CASE x.v ->> 'when'::text WHEN 'in' THEN t.now + (x.v ->> 'ms'::text)::bigint::float8 * interval '1 ms' WHEN 'keep' THEN s.due_at WHEN 'deadline' THEN s.deadline
                                        WHEN 'unpark' THEN coalesce(s.later, t.now) END,
           later = CASE x.v ->> 'when'::text WHEN 'park' THEN s.due_at WHEN 'parkin' THEN t.now + (x.v ->> 'ms'::text)::bigint::float8 * interval '1 ms' END,
           uncertain = (x.v ->> 'uncertain'::text)::boolean, fired = CASE WHEN (x.v ->> 'clear'::text)::boolean THEN NULL ELSE s.fired END,
           begun = s.begun - (SELECT pg_catalog.count(*) FROM recorded WHERE recorded.member = ok.member AND recorded.state = 'notDone')
                         + (SELECT pg_catalog.count(*) FROM body WHERE body.shard = ok.shard AND body.workspace = ok.workspace AND body.operation = ok.run || '/' || ok.step || '/' || ok.visit::text),
           started_at = coalesce(s.started_at, CASE WHEN x.v ->> 'status'::text IN ('RUNNING', 'WAITING') THEN t.now END),
           finished_at = CASE WHEN (x.v ->> 'over'::text)::boolean THEN t.now END
      FROM t, ok CROSS JOIN LATERAL (SELECT ok.plan -> 'touch'::text) AS x(v)
     WHERE s.shard = ANY (ARRAY[ok.shard]) AND s.workspace = ok.workspace AND s.run = ok.run AND s.name = ok.step AND s.visit = ok.visit AND x.v IS NOT NULL
    RETURNING ok.member, s.until
), {include runs/add_steps ANY (ARRAY[ok.shard])},
{include runs/add_approval}, expired_approval AS (
    UPDATE {schema}.approval a
       SET status = 'expired', decided_at = t.now
      FROM t, ok
     WHERE a.shard = ANY (ARRAY[ok.shard]) AND a.workspace = ok.workspace AND a.run = ok.run AND a.step = ok.step AND a.visit = ok.visit
       AND (ok.plan ->> 'lapse'::text)::boolean AND a.status || '' = 'pending' -- uses the key, not the index of pending approvals
), taken_signal AS (
    UPDATE {schema}.signal g
       SET taken = ok.step || '/' || ok.visit::text
      FROM ok
     WHERE g.shard = ANY (ARRAY[ok.shard]) AND g.workspace = ok.workspace AND g.run = ok.run AND g.id = ok.plan ->> 'signal'::text
), {include history/write}
    {include runs/select_plan_events}
    {due_notices}
SELECT m.member,
       CASE WHEN moved.member IS NOT NULL THEN 1
            WHEN (cur.member IS NULL OR st.member IS NULL)
             AND EXISTS (SELECT 1 FROM {schema}.run r WHERE r.shard = ANY (ARRAY[m.shard]) AND r.workspace = m.workspace AND r.id = m.run)
             AND EXISTS (SELECT 1 FROM {schema}.step s WHERE s.shard = ANY (ARRAY[m.shard]) AND s.workspace = m.workspace AND s.run = m.run AND s.name = m.step AND s.visit = m.visit) THEN 2
            ELSE 0 END,
       coalesce(moved.version, CASE WHEN st.changed THEN -1 END, cur.version, -1),
       coalesce((SELECT touched.until FROM touched WHERE touched.member = m.member),
                (SELECT pg_catalog.max(added.until) FROM added WHERE added.shard = m.shard AND added.workspace = m.workspace AND added.run = m.run), 'epoch'), (SELECT t.now FROM t)
  FROM m LEFT JOIN cur ON cur.member = m.member
  LEFT JOIN st ON st.member = m.member
  LEFT JOIN moved ON moved.member = m.member
