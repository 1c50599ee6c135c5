-- Takes an entity that nobody has into a claim: the status that it is in says into
-- which. Taking adds one to the epoch, and begins an operation. An expired lease that is in the way is told by the phase.
-- $4 lifecycle, $5 entity, $6 claims by status, a JSON object of [into, revert, plan], $7 want, $8 operation, $9 step,
-- $10 requester, $11 input, $12 holder, $13 lease in ms, $14 whether nobody resumes it, $15 effects begun with it,
-- $16 correlation, $17 causation, $18 actor
-- $19 revision, $20 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[],
                         $9::text[], $10::text[], $11::text[], $12::text[], $13::bigint[], $14::bigint[],
                         $15::bigint[], $16::text[], $17::text[], $18::text[], $19::bigint[], $20::text[])
             WITH ORDINALITY AS m(shard, workspace, command, lifecycle, entity, choices, want, operation, step, requester, input, holder, lease,
                                  manual, begun, correlation, causation, actor, revision, marks, member)
     WHERE {known}
), cur AS (
    SELECT m.member, m.command, e.shard, e.workspace, e.lifecycle, e.id, e.status, e.version, e.data, e.created_at,
           e.updated_at, e.phase, e.operation, e.step, e.requester, e.revert, e.input, e.holder, e.epoch, e.until,
           e.claimed_at, e.begun, e.failures, e.deaths, e.error, e.outcome, e.manual, m.choices AS a_choices,
           m.want AS a_want, m.operation AS a_operation, m.step AS a_step, m.requester AS a_requester,
           m.input AS a_input, m.holder AS a_holder, m.lease AS a_lease, m.manual AS a_manual, m.begun AS a_begun,
           m.correlation AS a_correlation, m.causation AS a_causation, m.actor AS a_actor
      FROM m JOIN {schema}.entity e
        ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
     ORDER BY m.shard, e.workspace, e.lifecycle, e.id
       FOR UPDATE OF e{skip}
), moved AS (
    UPDATE {schema}.entity e
       SET status = cur.a_choices::jsonb -> cur.status ->> 0, revert = cur.a_choices::jsonb -> cur.status ->> 1, plan = cur.a_choices::jsonb -> cur.status -> 2, version = cur.version + 1,
           phase = 'held', operation = cur.a_operation, step = cur.a_step, requester = cur.a_requester, input = cur.a_input::json,
           manual = cur.a_manual = 1, holder = cur.a_holder, epoch = cur.epoch + 1, until = {now} + cur.a_lease::float8 * interval '1 ms',
           claimed_at = {now}, due_at = NULL, queue = NULL, stage = NULL, begun = cur.a_begun, failures = 0, deaths = 0, error = NULL, outcome = NULL, updated_at = {now}
      FROM cur
     WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
       AND cur.phase = 'free' AND cur.a_choices::jsonb ? cur.status AND (cur.a_want IS NULL OR cur.a_want = cur.version)
    RETURNING cur.member, cur.command, cur.status AS was, e.shard, e.workspace, e.lifecycle, e.id, e.status,
              e.version, e.data, e.created_at, e.updated_at, e.phase, e.operation, e.step, e.requester, e.revert,
              e.input, e.holder, e.epoch, e.until, e.claimed_at, e.begun, e.failures, e.deaths, e.error, e.outcome,
              e.manual, cur.a_choices, cur.a_want, cur.a_operation, cur.a_step, cur.a_requester, cur.a_input,
              cur.a_holder, cur.a_lease, cur.a_manual, cur.a_begun, cur.a_correlation, cur.a_causation, cur.a_actor
), told AS (
    SELECT moved.member, 1 AS applied, moved.status, moved.version, moved.data, moved.created_at, moved.updated_at,
           moved.phase, moved.operation, moved.step, moved.requester, moved.revert, moved.input, moved.holder,
           moved.epoch, moved.until, moved.claimed_at, moved.begun, moved.failures, moved.deaths, moved.error,
           moved.outcome, moved.manual FROM moved
    UNION ALL
    SELECT cur.member, 0, cur.status, cur.version, cur.data, cur.created_at, cur.updated_at,
           CASE WHEN cur.until <= {now} THEN 'expired' ELSE cur.phase END, cur.operation, cur.step, cur.requester, cur.revert, cur.input, cur.holder, cur.epoch, cur.until,
           cur.claimed_at, cur.begun, cur.failures, cur.deaths, cur.error, cur.outcome, cur.manual FROM cur
     WHERE cur.member NOT IN (SELECT moved.member FROM moved)
), written AS (
    INSERT INTO {schema}.history
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT moved.shard, moved.command, 0, moved.workspace, '$entity/' || moved.lifecycle || '/' || moved.id, moved.version,
           'claimed',
           pg_catalog.json_build_object('from', moved.was, 'to', moved.status, 'step', moved.step, 'requester', moved.requester, 'operation', moved.operation,
                             'epoch', moved.epoch, 'holder', moved.holder),
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
