-- Claims a free entity: its status selects the claim. Increments the epoch and begins an
-- operation. If an expired lease is in the way, the returned phase is 'expired'.
-- :choices claims by status, a JSON object of [into, revert, plan]; :manual whether the operation is not resumed automatically
WITH {members}, cur AS (
    SELECT m.member, m.command, e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}, m.choices AS a_choices,
           m.want AS a_want, m.operation AS a_operation, m.step AS a_step, m.requester AS a_requester,
           m.input AS a_input, m.holder AS a_holder, m.lease AS a_lease, m.manual AS a_manual, m.begun AS a_begun,
           m.correlation AS a_correlation, m.causation AS a_causation, m.actor AS a_actor
      {include entities/lock}
), moved AS (
    UPDATE {schema}.entity e
       SET status = cur.a_choices::jsonb -> cur.status ->> 0, revert = cur.a_choices::jsonb -> cur.status ->> 1, plan = cur.a_choices::jsonb -> cur.status -> 2, version = cur.version + 1,
           phase = 'held', operation = cur.a_operation, step = cur.a_step, requester = cur.a_requester, input = cur.a_input::json,
           manual = cur.a_manual = 1, holder = cur.a_holder, epoch = cur.epoch + 1, until = {now} + cur.a_lease::float8 * interval '1 ms',
           claimed_at = {now}, due_at = NULL, queue = NULL, stage = NULL, begun = cur.a_begun, failures = 0, deaths = 0, error = NULL, outcome = NULL, updated_at = {now}
      FROM cur
     WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
       AND cur.phase = 'free' AND cur.a_choices::jsonb ? cur.status AND (cur.a_want IS NULL OR cur.a_want = cur.version)
    RETURNING cur.member, cur.command, cur.status AS was, e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}, cur.a_correlation,
              cur.a_causation, cur.a_actor
), result AS (
    SELECT moved.member, 1 AS applied, {include entities/columns moved} FROM moved
    UNION ALL
    SELECT cur.member, 0, cur.status, cur.version, cur.data, cur.created_at, cur.updated_at,
           CASE WHEN cur.until <= {now} THEN 'expired' ELSE cur.phase END, cur.operation, cur.step, cur.requester, cur.revert, cur.input, cur.holder, cur.epoch, cur.until,
           cur.claimed_at, cur.begun, cur.failures, cur.deaths, cur.error, cur.outcome, cur.manual FROM cur
     WHERE cur.member NOT IN (SELECT moved.member FROM moved)
), {include history/write}
    SELECT moved.shard, moved.command, 0, moved.workspace, '$entity/' || moved.lifecycle || '/' || moved.id, moved.version,
           'claimed',
           pg_catalog.json_build_object('from', moved.was, 'to', moved.status, 'step', moved.step, 'requester', moved.requester, 'operation', moved.operation,
                             'epoch', moved.epoch, 'holder', moved.holder),
           moved.a_correlation, moved.a_causation, moved.a_actor, moved.updated_at
      FROM moved
    {due_notices}
{include entities/select_result}
