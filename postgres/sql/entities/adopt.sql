-- Leases an entity that is in a claim status without a claim, until it is reverted.
WITH {members}, cur AS (
    SELECT m.member, m.command, e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}, m.claim AS a_claim,
           m.revert AS a_revert, m.operation AS a_operation, m.holder AS a_holder, m.lease AS a_lease
      {include entities/lock}
), moved AS (
    UPDATE {schema}.entity e
       SET phase = 'held', operation = cur.a_operation, step = NULL, requester = NULL, revert = cur.a_revert, input = NULL, manual = true,
           holder = cur.a_holder, epoch = cur.epoch + 1, until = {now} + cur.a_lease::float8 * interval '1 ms', claimed_at = {now}, due_at = NULL, queue = NULL, stage = NULL,
           plan = pg_catalog.jsonb_build_object('operation', cur.a_operation, 'into', cur.a_claim),
           begun = 0, failures = 0, deaths = 0, error = NULL, outcome = NULL, version = cur.version + 1, updated_at = {now}
      FROM cur
     WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
       AND cur.phase = 'free' AND cur.status = cur.a_claim
    RETURNING cur.member, cur.command, cur.status AS was, e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}
), {include entities/result 0},
{include history/write}
    SELECT moved.shard, moved.command, 0, moved.workspace, '$entity/' || moved.lifecycle || '/' || moved.id, moved.version,
           'adopted',
           pg_catalog.json_build_object('from', moved.was, 'to', moved.status, 'operation', moved.operation, 'epoch', moved.epoch),
           NULL, NULL, NULL, moved.updated_at
      FROM moved
    {due_notices}
{include entities/select_result}
