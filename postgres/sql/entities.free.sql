-- Frees a hold that has run out, and looks at what was begun under it first: where
-- no effect was begun that may have happened, the entity goes back; otherwise it
-- stays in the claim, to be resumed or, where nobody resumes it or too many have
-- died of it, until a person says what happened. A hold that was quiet is a lost
-- hand-out, and no death: the operation is due again after a pause.
-- $4 lifecycle, $5 entity, $6 epoch, $7 whether there is somebody to resume it, $8 deaths allowed, $9 note,
-- $10 claim status, $11 pause behind a lost hand-out in ms
-- $12 revision, $13 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
                         $9::text[], $10::text[], $11::bigint[], $12::bigint[], $13::text[])
             WITH ORDINALITY AS m(shard, workspace, command, lifecycle, entity, epoch, resume, allowed, note, claim, pause, revision, marks, member)
     WHERE {known}
), cur AS (
    SELECT m.member, m.command, e.shard, e.workspace, e.lifecycle, e.id, e.status, e.version, e.data, e.created_at,
           e.updated_at, e.phase, e.operation, e.step, e.requester, e.revert, e.input, e.holder, e.epoch, e.until,
           e.claimed_at, e.begun, e.failures, e.deaths, e.error, e.outcome, e.manual, m.epoch AS a_epoch,
           m.resume AS a_resume, m.allowed AS a_allowed, m.note AS a_note, m.claim AS a_claim, m.pause AS a_pause, e.quiet, e.lost,
           CASE WHEN e.begun = 0 AND NOT (e.quiet AND e.status = m.claim) THEN 'recovered'
                WHEN e.begun > 0 AND (e.manual OR m.resume = 0 OR NOT e.quiet AND e.deaths + 1 >= m.allowed) THEN 'parked'
                WHEN e.quiet THEN 'lost' ELSE 'interrupted' END AS fate
      FROM m JOIN {schema}.entity e
        ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
     ORDER BY m.shard, e.workspace, e.lifecycle, e.id
       FOR UPDATE OF e{skip}
), moved AS (
    UPDATE {schema}.entity e
       SET phase = CASE cur.fate WHEN 'recovered' THEN 'free' WHEN 'parked' THEN 'uncertain' ELSE 'due' END,
           status = CASE WHEN cur.fate = 'recovered' AND cur.status = cur.a_claim THEN cur.revert ELSE cur.status END,
           outcome = CASE WHEN cur.fate = 'recovered' THEN 'recovered' END,
           error = CASE WHEN cur.quiet THEN 'it was handed out to ' || cur.holder || ', who was not heard of' ELSE 'the holder ' || cur.holder || ' did not come back' END,
           deaths = cur.deaths + CASE WHEN cur.quiet THEN 0 ELSE 1 END, version = cur.version + 1, quiet = false,
           lost = CASE WHEN cur.fate = 'lost' THEN cur.lost + 1 ELSE 0 END, holder = NULL, until = NULL,
           due_at = {now} + CASE WHEN cur.fate = 'lost' THEN cur.a_pause ELSE 0 END::float8 * interval '1 ms',
           updated_at = {now}
      FROM cur
     WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
       AND cur.epoch = cur.a_epoch AND cur.phase = 'held' AND cur.until <= {now}
    RETURNING cur.member, cur.command, cur.status AS was, e.shard, e.workspace, e.lifecycle, e.id, e.status,
              e.version, e.data, e.created_at, e.updated_at, e.phase, e.operation, e.step, e.requester, e.revert,
              e.input, e.holder, e.epoch, e.until, e.claimed_at, e.begun, e.failures, e.deaths, e.error, e.outcome,
              e.manual, cur.a_epoch, cur.a_resume, cur.a_allowed, cur.a_note, cur.a_claim, cur.fate,
              CASE WHEN cur.quiet THEN cur.lost + 1 ELSE 0 END AS lost
), told AS (
    SELECT moved.member, 1 AS applied, moved.status, moved.version, moved.data, moved.created_at, moved.updated_at,
           moved.phase, moved.operation, moved.step, moved.requester, moved.revert, moved.input, moved.holder,
           moved.epoch, moved.until, moved.claimed_at, moved.begun, moved.failures, moved.deaths, moved.error,
           moved.outcome, moved.manual FROM moved
    UNION ALL
    SELECT cur.member, 0, cur.status, cur.version, cur.data, cur.created_at, cur.updated_at, cur.phase,
           cur.operation, cur.step, cur.requester, cur.revert, cur.input, cur.holder, cur.epoch, cur.until,
           cur.claimed_at, cur.begun, cur.failures, cur.deaths, cur.error, cur.outcome, cur.manual FROM cur
     WHERE cur.member NOT IN (SELECT moved.member FROM moved)
), written AS (
    INSERT INTO {schema}.history
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT moved.shard, moved.command, 0, moved.workspace, '$entity/' || moved.lifecycle || '/' || moved.id, moved.version,
           moved.fate,
           pg_catalog.json_build_object('from', moved.was, 'to', moved.status, 'step', moved.step, 'requester', moved.requester, 'operation', moved.operation,
                             'epoch', moved.epoch, 'effects', moved.begun, 'deaths', moved.deaths, 'lost', moved.lost, 'message', moved.error, 'note', moved.a_note::json),
           NULL, NULL, NULL, moved.updated_at
      FROM moved
    RETURNING shard, id, workspace, stream, version
){mark}
SELECT m.member,
       coalesce(told.applied, CASE WHEN EXISTS (SELECT 1 FROM {schema}.entity e WHERE e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace
                                                   AND e.lifecycle = m.lifecycle AND e.id = m.entity) THEN 2 ELSE 0 END),
       coalesce(told.status, ''), coalesce(told.version, -1), coalesce(told.data, 'null')::text,
       coalesce(told.created_at, 'epoch'), coalesce(told.updated_at, 'epoch'), coalesce(told.phase, 'free'),
       coalesce(told.operation, ''), coalesce(told.step, ''), coalesce(told.requester, ''),
       coalesce(told.revert, ''), coalesce(told.input::text, ''), coalesce(told.holder, ''), coalesce(told.epoch, 0),
       coalesce(told.until, 'epoch'), coalesce(told.claimed_at, 'epoch'), coalesce(told.begun, 0),
       coalesce(told.failures, 0), coalesce(told.deaths, 0), coalesce(told.error, ''), coalesce(told.outcome, ''),
       coalesce(told.manual, false)
  FROM m LEFT JOIN told ON told.member = m.member
