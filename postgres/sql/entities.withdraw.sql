-- Withdraws an operation that is due, and that nobody holds: where no effect was begun that may have happened, the entity
-- goes back; otherwise it stays in the claim until a person says what happened. That is another epoch: no earlier holder has
-- ended it.
-- $4 lifecycle, $5 entity, $6 operation, $7 epoch, $8 outcome, $9 message, $10 claim status, $11 correlation, $12 causation, $13 actor
-- $14 revision, $15 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[],
                         $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::text[])
             WITH ORDINALITY AS m(shard, workspace, command, lifecycle, entity, operation, epoch, outcome, message, claim, correlation, causation, actor,
                                  revision, marks, member)
     WHERE {known}
), cur AS (
    SELECT m.member, m.command, e.shard, e.workspace, e.lifecycle, e.id, e.status, e.version, e.data, e.created_at,
           e.updated_at, e.phase, e.operation, e.step, e.requester, e.revert, e.input, e.holder, e.epoch, e.until,
           e.claimed_at, e.begun, e.failures, e.deaths, e.error, e.outcome, e.manual, m.operation AS a_operation,
           m.epoch AS a_epoch, m.outcome AS a_outcome, m.message AS a_message, m.claim AS a_claim, m.correlation AS a_correlation,
           m.causation AS a_causation, m.actor AS a_actor
      FROM m JOIN {schema}.entity e
        ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
     ORDER BY m.shard, e.workspace, e.lifecycle, e.id
       FOR UPDATE OF e{skip}
), moved AS (
    UPDATE {schema}.entity e
       SET phase = CASE WHEN cur.begun = 0 THEN 'free' ELSE 'uncertain' END,
           status = CASE WHEN cur.begun = 0 AND cur.status = cur.a_claim THEN cur.revert ELSE cur.status END,
           outcome = CASE WHEN cur.begun = 0 THEN cur.a_outcome END, error = cur.a_message, lost = 0, epoch = cur.epoch + 1,
           version = cur.version + 1, updated_at = {now}
      FROM cur
     WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
       AND cur.operation = cur.a_operation AND cur.epoch = cur.a_epoch AND cur.phase = 'due'
    RETURNING cur.member, cur.command, cur.status AS was, e.shard, e.workspace, e.lifecycle, e.id, e.status,
              e.version, e.data, e.created_at, e.updated_at, e.phase, e.operation, e.step, e.requester, e.revert,
              e.input, e.holder, e.epoch, e.until, e.claimed_at, e.begun, e.failures, e.deaths, e.error, e.outcome,
              e.manual, cur.a_correlation, cur.a_causation, cur.a_actor
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
           CASE moved.phase WHEN 'free' THEN 'released' ELSE 'parked' END,
           pg_catalog.json_build_object('from', moved.was, 'to', moved.status, 'step', moved.step, 'requester', moved.requester, 'operation', moved.operation,
                             'epoch', moved.epoch, 'outcome', moved.outcome, 'effects', moved.begun, 'message', moved.error, 'input', moved.input),
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
