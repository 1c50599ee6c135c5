-- Ends a hold that has not run out, and looks at what was begun under it first. A
-- success ends the operation, if all that was begun is known. So does giving back,
-- where no effect was begun that may have happened: then the entity goes where it is
-- told, or back. Otherwise it stays in the claim, to be resumed later or, past the
-- retries, or if nobody resumes it, or if that is what is asked for, until a person
-- says what happened. Being told to stop is no failure. A status that somebody has
-- changed under the claim is left alone. Whoever had to wait for the entity does not see an
-- effect that was begun meanwhile, and asks again: the count tells. Of the others the rows are
-- locked, and so read as they are; the condition on their state stands outside, or it would be
-- tried on the old ones.
-- $4 lifecycle, $5 entity, $6 operation, $7 epoch, $8 how: success, back or park, $9 to (NULL: back), $10 data,
-- $11 results of effects, a JSON list of {n: name, o: ordinal, r: result}, $12 delay in ms, $13 retries, $14 event,
-- $15 message, $16 outcome, $17 note, $18 claim status, $19 correlation, $20 causation, $21 actor
-- $22 revision, $23 marks
WITH m AS (
    SELECT * FROM unnest($1::smallint[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[],
                         $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::text[],
                         $15::text[], $16::text[], $17::text[], $18::text[], $19::text[], $20::text[], $21::text[],
                         $22::bigint[], $23::text[])
             WITH ORDINALITY AS m(shard, workspace, command, lifecycle, entity, operation, epoch, how, target, data, results, delay, retries, event,
                                  message, outcome, note, claim, correlation, causation, actor, revision, marks,
                                  member)
     WHERE {known}
), locked AS (
    SELECT m.member, m.command, e.shard, e.workspace, e.lifecycle, e.id, e.status, e.version, e.data, e.created_at,
           e.updated_at, e.phase, e.operation, e.step, e.requester, e.revert, e.input, e.holder, e.epoch, e.until,
           e.claimed_at, e.begun, e.failures, e.deaths, e.error, e.outcome, e.manual, m.operation AS a_operation,
           m.epoch AS a_epoch, m.how AS a_how, m.target AS a_target, m.data AS a_data, m.results AS a_results,
           m.delay AS a_delay, m.retries AS a_retries, m.event AS a_event, m.message AS a_message,
           m.outcome AS a_outcome, m.note AS a_note, m.claim AS a_claim, m.correlation AS a_correlation,
           m.causation AS a_causation, m.actor AS a_actor
      FROM m JOIN {schema}.entity e
        ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
     ORDER BY m.shard, e.workspace, e.lifecycle, e.id
       FOR UPDATE OF e{skip}
), seen AS (
    SELECT m.member, e.operation, e.begun
      FROM m JOIN {schema}.entity e
        ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
), cur AS MATERIALIZED (
    SELECT cur.*,
           cur.begun > 0 AND NOT EXISTS (SELECT 1 FROM seen WHERE seen.member = cur.member AND seen.operation = cur.operation AND seen.begun = cur.begun) AS stale,
           CASE WHEN cur.a_how = 'success' THEN CASE WHEN (cur.begun = 0 OR cur.begun <= (SELECT pg_catalog.count(*)
                     FROM (SELECT x.name, x.ordinal, x.state FROM {schema}.effect x
                            WHERE x.shard = cur.shard AND x.workspace = cur.workspace AND x.operation = cur.operation
                              FOR SHARE) AS x
                    WHERE x.state = 'done' OR (x.state = 'begun' AND EXISTS (SELECT 1 FROM pg_catalog.jsonb_array_elements(cur.a_results::jsonb) AS r(item)
                                                                             WHERE r.item ->> 'n'::text = x.name AND (r.item ->> 'o'::text)::integer = x.ordinal)))) THEN 'free' ELSE 'uncertain' END
                WHEN cur.begun = 0 THEN 'free'
                WHEN cur.a_how = 'park' OR cur.manual OR (cur.failures + 1 > cur.a_retries AND cur.a_outcome <> 'cancelled') THEN 'uncertain'
                ELSE 'due' END AS becomes
      FROM locked cur
), moved AS (
    UPDATE {schema}.entity e
       SET phase = cur.becomes,
           status = CASE WHEN cur.becomes = 'free' AND cur.status = cur.a_claim THEN coalesce(cur.a_target, cur.revert) ELSE cur.status END,
           outcome = CASE WHEN cur.becomes = 'free' THEN cur.a_outcome END,
           data = CASE WHEN cur.becomes = 'free' THEN coalesce(cur.a_data::jsonb, cur.data) ELSE cur.data END, version = cur.version + 1,
           holder = NULL, until = NULL, quiet = false, lost = 0, due_at = {now} + cur.a_delay::float8 * interval '1 ms', error = cur.a_message,
           failures = cur.failures + CASE WHEN cur.a_how = 'success' OR cur.a_outcome = 'cancelled' THEN 0 ELSE 1 END, updated_at = {now}
      FROM cur
     WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
       AND cur.operation = cur.a_operation AND cur.epoch = cur.a_epoch AND cur.phase = 'held' AND cur.until > {now}
       AND (cur.a_how <> 'success' OR cur.status = cur.a_claim) AND NOT cur.stale
    RETURNING cur.member, cur.command, cur.status AS was, e.shard, e.workspace, e.lifecycle, e.id, e.status,
              e.version, e.data, e.created_at, e.updated_at, e.phase, e.operation, e.step, e.requester, e.revert,
              e.input, e.holder, e.epoch, e.until, e.claimed_at, e.begun, e.failures, e.deaths, e.error, e.outcome,
              e.manual, cur.a_operation, cur.a_epoch, cur.a_how, cur.a_target, cur.a_data, cur.a_results,
              cur.a_delay, cur.a_retries, cur.a_event, cur.a_message, cur.a_outcome, cur.a_note, cur.a_claim,
              cur.a_correlation, cur.a_causation, cur.a_actor
), results AS (
    UPDATE {schema}.effect x
       SET state = 'done', result = (r.item -> 'r'::text)::text::json, ended_at = {now}
      FROM moved CROSS JOIN LATERAL pg_catalog.jsonb_array_elements(moved.a_results::jsonb) AS r(item)
     WHERE x.shard = ANY (ARRAY[moved.shard]) AND x.workspace = moved.workspace AND x.operation = moved.operation
       AND x.name = r.item ->> 'n'::text AND x.ordinal = (r.item ->> 'o'::text)::integer AND x.state = 'begun'
), told AS (
    SELECT moved.member, 1 AS applied, moved.status, moved.version, moved.data, moved.created_at, moved.updated_at,
           moved.phase, moved.operation, moved.step, moved.requester, moved.revert, moved.input, moved.holder,
           moved.epoch, moved.until, moved.claimed_at, moved.begun, moved.failures, moved.deaths, moved.error,
           moved.outcome, moved.manual FROM moved
    UNION ALL
    SELECT cur.member, CASE WHEN cur.stale THEN 2 ELSE 0 END, cur.status, cur.version, cur.data, cur.created_at, cur.updated_at, cur.phase,
           cur.operation, cur.step, cur.requester, cur.revert, cur.input, cur.holder, cur.epoch, cur.until,
           cur.claimed_at, cur.begun, cur.failures, cur.deaths, cur.error, cur.outcome, cur.manual FROM cur
     WHERE cur.member NOT IN (SELECT moved.member FROM moved)
), written AS (
    INSERT INTO {schema}.history
        (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
    SELECT moved.shard, moved.command, 0, moved.workspace, '$entity/' || moved.lifecycle || '/' || moved.id, moved.version,
           CASE moved.phase WHEN 'free' THEN moved.a_event WHEN 'due' THEN 'interrupted' ELSE 'parked' END,
           pg_catalog.json_build_object('from', moved.was, 'to', moved.status, 'step', moved.step, 'requester', moved.requester, 'operation', moved.operation,
                             'epoch', moved.epoch, 'outcome', moved.outcome, 'effects', moved.begun, 'message', moved.a_message,
                             'input', moved.input, 'note', moved.a_note::json),
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
