-- Ends the uncertainty of an operation, once nothing of it is unknown any more: it
-- is due again, or ends where it is told to. That is another epoch: the late holder has not ended it. Whoever
-- had to wait for the entity does not see what became of its effects meanwhile, and asks again: the version tells.
-- $4 lifecycle, $5 entity, $6 operation, $7 epoch, $8 how: resume, success or back, $9 to (NULL: back), $10 event,
-- $11 outcome, $12 note, $13 correlation, $14 causation, $15 actor
-- $16 revision, $17 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[],
                         $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[],
                         $16::bigint[], $17::text[])
             WITH ORDINALITY AS m(shard, workspace, command, lifecycle, entity, operation, epoch, how, target, event, outcome, note, correlation,
                                  causation, actor, revision, marks, member)
     WHERE {known}
), cur AS (
    SELECT m.member, m.command, e.shard, e.workspace, e.lifecycle, e.id, e.status, e.version, e.data, e.created_at,
           e.updated_at, e.phase, e.operation, e.step, e.requester, e.revert, e.input, e.holder, e.epoch, e.until,
           e.claimed_at, e.begun, e.failures, e.deaths, e.error, e.outcome, e.manual, m.operation AS a_operation,
           m.epoch AS a_epoch, m.how AS a_how, m.target AS a_target, m.event AS a_event, m.outcome AS a_outcome,
           m.note AS a_note, m.correlation AS a_correlation, m.causation AS a_causation, m.actor AS a_actor
      FROM m JOIN {schema}.entity e
        ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
     ORDER BY m.shard, e.workspace, e.lifecycle, e.id
       FOR UPDATE OF e{skip}
), seen AS (
    SELECT m.member, e.version
      FROM m JOIN {schema}.entity e
        ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
), moved AS (
    UPDATE {schema}.entity e
       SET phase = CASE WHEN cur.a_how = 'resume' AND cur.begun > 0 THEN 'due' ELSE 'free' END,
           status = CASE WHEN cur.a_how = 'success' THEN cur.a_target WHEN cur.a_how = 'back' OR cur.begun = 0 THEN coalesce(cur.a_target, cur.revert) ELSE cur.status END,
           outcome = CASE WHEN cur.a_how = 'resume' AND cur.begun > 0 THEN NULL ELSE cur.a_outcome END,
           failures = 0, deaths = 0, due_at = {now}, version = cur.version + 1, epoch = cur.epoch + 1, updated_at = {now}
      FROM cur JOIN seen ON seen.member = cur.member AND seen.version = cur.version
     WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
       AND cur.operation = cur.a_operation AND cur.epoch = cur.a_epoch AND cur.phase = 'uncertain'
       AND NOT EXISTS (SELECT 1 FROM {schema}.effect x WHERE x.shard = ANY (ARRAY[cur.shard]) AND x.workspace = cur.workspace
                                                         AND x.operation = cur.operation AND x.state = 'begun')
    RETURNING cur.member, cur.command, cur.status AS was, e.shard, e.workspace, e.lifecycle, e.id, e.status,
              e.version, e.data, e.created_at, e.updated_at, e.phase, e.operation, e.step, e.requester, e.revert,
              e.input, e.holder, e.epoch, e.until, e.claimed_at, e.begun, e.failures, e.deaths, e.error, e.outcome,
              e.manual, cur.a_operation, cur.a_epoch, cur.a_how, cur.a_target, cur.a_event, cur.a_outcome,
              cur.a_note, cur.a_correlation, cur.a_causation, cur.a_actor
), told AS (
    SELECT moved.member, 1 AS applied, moved.status, moved.version, moved.data, moved.created_at, moved.updated_at,
           moved.phase, moved.operation, moved.step, moved.requester, moved.revert, moved.input, moved.holder,
           moved.epoch, moved.until, moved.claimed_at, moved.begun, moved.failures, moved.deaths, moved.error,
           moved.outcome, moved.manual FROM moved
    UNION ALL
    SELECT cur.member, CASE WHEN cur.phase = 'uncertain' AND cur.version <> seen.version THEN 2 ELSE 0 END, cur.status, cur.version, cur.data,
           cur.created_at, cur.updated_at, cur.phase, cur.operation, cur.step, cur.requester, cur.revert, cur.input, cur.holder, cur.epoch, cur.until,
           cur.claimed_at, cur.begun, cur.failures, cur.deaths, cur.error, cur.outcome, cur.manual
      FROM cur JOIN seen ON seen.member = cur.member
     WHERE cur.member NOT IN (SELECT moved.member FROM moved)
), written AS (
    INSERT INTO {schema}.history
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT moved.shard, moved.command, 0, moved.workspace, '$entity/' || moved.lifecycle || '/' || moved.id, moved.version,
           CASE moved.phase WHEN 'due' THEN 'resumed' ELSE moved.a_event END,
           pg_catalog.json_build_object('from', moved.was, 'to', moved.status, 'step', moved.step, 'requester', moved.requester, 'operation', moved.operation,
                             'epoch', moved.epoch, 'outcome', moved.outcome, 'effects', moved.begun, 'input', moved.input, 'note', moved.a_note::json),
           moved.a_correlation, moved.a_causation, moved.a_actor, moved.updated_at
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
