-- Hands an operation that is held on to who takes up a queue: nothing of it was done
-- yet that cannot be done again.
-- $4 lifecycle, $5 entity, $6 operation, $7 epoch, $8 queue (NULL: a node that has the lifecycle), $9 stage, $10 claim status
-- $11 revision, $12 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[],
                         $9::text[], $10::text[], $11::bigint[], $12::text[])
             WITH ORDINALITY AS m(shard, workspace, command, lifecycle, entity, operation, epoch, queue, stage, claim, revision, marks, member)
     WHERE {known}
), cur AS (
    SELECT m.member, m.command, e.shard, e.workspace, e.lifecycle, e.id, e.status, e.version, e.data, e.created_at,
           e.updated_at, e.phase, e.operation, e.step, e.requester, e.revert, e.input, e.holder, e.epoch, e.until,
           e.claimed_at, e.begun, e.failures, e.deaths, e.error, e.outcome, e.manual, m.operation AS a_operation,
           m.epoch AS a_epoch, m.queue AS a_queue, m.stage AS a_stage, m.claim AS a_claim
      FROM m JOIN {schema}.entity e
        ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
     ORDER BY m.shard, e.workspace, e.lifecycle, e.id
       FOR UPDATE OF e{skip}
), moved AS (
    UPDATE {schema}.entity e
       SET phase = 'due', queue = cur.a_queue, stage = cur.a_stage, holder = NULL, until = NULL, quiet = false, lost = 0, due_at = {now}, version = cur.version + 1,
           updated_at = {now}
      FROM cur
     WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
       AND cur.operation = cur.a_operation AND cur.epoch = cur.a_epoch AND cur.phase = 'held' AND cur.until > {now} AND cur.status = cur.a_claim
    RETURNING cur.member, cur.command, e.stage, e.shard, e.workspace, e.lifecycle, e.id, e.status, e.version, e.data, e.created_at,
              e.updated_at, e.phase, e.operation, e.step, e.requester, e.revert, e.input, e.holder, e.epoch, e.until,
              e.claimed_at, e.begun, e.failures, e.deaths, e.error, e.outcome, e.manual
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
    SELECT moved.shard, moved.command, 0, moved.workspace, '$entity/' || moved.lifecycle || '/' || moved.id, moved.version, 'queued',
           pg_catalog.json_build_object('from', moved.status, 'to', moved.status, 'step', moved.step, 'requester', moved.requester, 'operation', moved.operation,
                             'epoch', moved.epoch, 'stage', moved.stage),
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
