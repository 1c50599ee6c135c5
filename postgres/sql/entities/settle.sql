-- Ends a lease that has not expired, depending on the effects begun under it. A success
-- ends the operation if the outcome of all begun effects is known. Giving back ends it if no
-- begun effect may have happened: the entity then moves to its target, or is reverted.
-- Otherwise the entity stays in the claim: it is resumed later, or is parked until a person
-- decides, if the retries are used up, if it is manual, or if :how asks for it. A
-- cancellation does not count as a failure. A status that was changed during the claim is
-- not touched. A statement that waited for the entity does not see an effect begun
-- meanwhile: the count of effects differs, and the caller retries. Other effects are locked
-- and so read as they are now; the condition on their state is outside of the locking
-- subquery, where it would be evaluated on the old rows.
-- :how success, back or park; :target (NULL: revert); :results of effects, a JSON list of {n: name, o: ordinal, r: result}
WITH {members}, locked AS (
    SELECT m.member, m.command, e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}, m.operation AS a_operation,
           m.epoch AS a_epoch, m.how AS a_how, m.target AS a_target, m.data AS a_data, m.results AS a_results,
           m.delay AS a_delay, m.retries AS a_retries, m.event AS a_event, m.message AS a_message,
           m.outcome AS a_outcome, m.note AS a_note, m.claim AS a_claim, m.correlation AS a_correlation,
           m.causation AS a_causation, m.actor AS a_actor
      {include entities/lock}
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
    RETURNING cur.member, cur.command, cur.status AS was, e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}, cur.a_results,
              cur.a_event, cur.a_message, cur.a_note, cur.a_correlation, cur.a_causation, cur.a_actor
), results AS (
    UPDATE {schema}.effect x
       SET state = 'done', result = (r.item -> 'r'::text)::text::json, ended_at = {now}
      FROM moved CROSS JOIN LATERAL pg_catalog.jsonb_array_elements(moved.a_results::jsonb) AS r(item)
     WHERE x.shard = ANY (ARRAY[moved.shard]) AND x.workspace = moved.workspace AND x.operation = moved.operation
       AND x.name = r.item ->> 'n'::text AND x.ordinal = (r.item ->> 'o'::text)::integer AND x.state = 'begun'
), {include entities/result CASE WHEN cur.stale THEN 2 ELSE 0 END},
{include history/write}
    SELECT moved.shard, moved.command, 0, moved.workspace, '$entity/' || moved.lifecycle || '/' || moved.id, moved.version,
           CASE moved.phase WHEN 'free' THEN moved.a_event WHEN 'due' THEN 'interrupted' ELSE 'parked' END,
           pg_catalog.json_build_object('from', moved.was, 'to', moved.status, 'step', moved.step, 'requester', moved.requester, 'operation', moved.operation,
                             'epoch', moved.epoch, 'outcome', moved.outcome, 'effects', moved.begun, 'message', moved.a_message,
                             'input', moved.input, 'note', moved.a_note::json),
           moved.a_correlation, moved.a_causation, moved.a_actor, moved.updated_at
      FROM moved
    {due_notices}
{include entities/select_result}
