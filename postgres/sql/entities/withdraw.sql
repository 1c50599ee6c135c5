-- Withdraws an operation that is due and not leased: if no begun effect may have happened, the entity is reverted; otherwise it stays in
-- the claim until a person decides. With :release, it also ends a lease, but only if no begun effect may have happened. Increments
-- the epoch, so that no earlier holder can end the operation.
WITH {members}, cur AS (
    SELECT m.member, m.command, e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}, m.operation AS a_operation,
           m.epoch AS a_epoch, m.outcome AS a_outcome, m.message AS a_message, m.claim AS a_claim, m.release AS a_release, m.correlation AS a_correlation,
           m.causation AS a_causation, m.actor AS a_actor
      {include entities/lock}
), moved AS (
    UPDATE {schema}.entity e
       SET phase = CASE WHEN cur.begun = 0 THEN 'free' ELSE 'uncertain' END,
           status = CASE WHEN cur.begun = 0 AND cur.status = cur.a_claim THEN cur.revert ELSE cur.status END,
           outcome = CASE WHEN cur.begun = 0 THEN cur.a_outcome END, error = cur.a_message, lost = 0, holder = NULL, until = NULL, quiet = false, epoch = cur.epoch + 1,
           version = cur.version + 1, updated_at = {now}
      FROM cur
     WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
       AND cur.operation = cur.a_operation AND cur.epoch = cur.a_epoch
       AND CASE WHEN cur.a_release = 1 THEN cur.phase IN ('due', 'held') AND cur.begun = 0 ELSE cur.phase = 'due' END
    RETURNING cur.member, cur.command, cur.status AS was, e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}, cur.a_correlation,
              cur.a_causation, cur.a_actor
), {include entities/result 0},
{include history/write}
    SELECT moved.shard, moved.command, 0, moved.workspace, '$entity/' || moved.lifecycle || '/' || moved.id, moved.version,
           CASE moved.phase WHEN 'free' THEN 'released' ELSE 'parked' END,
           pg_catalog.json_build_object('from', moved.was, 'to', moved.status, 'step', moved.step, 'requester', moved.requester, 'operation', moved.operation,
                             'epoch', moved.epoch, 'outcome', moved.outcome, 'effects', moved.begun, 'message', moved.error, 'input', moved.input),
           moved.a_correlation, moved.a_causation, moved.a_actor, moved.updated_at
      FROM moved
    {due_notices}
{include entities/select_result}
