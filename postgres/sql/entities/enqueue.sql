-- Hands a leased operation over to a queue. Nothing was done yet that cannot be
-- repeated.
-- :queue (NULL: any node that has the lifecycle)
WITH {members}, cur AS (
    SELECT m.member, m.command, e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}, m.operation AS a_operation,
           m.epoch AS a_epoch, m.queue AS a_queue, m.stage AS a_stage, m.claim AS a_claim
      {include entities/lock}
), moved AS (
    UPDATE {schema}.entity e
       SET phase = 'due', queue = cur.a_queue, stage = cur.a_stage, holder = NULL, until = NULL, quiet = false, lost = 0, due_at = {now}, version = cur.version + 1,
           updated_at = {now}
      FROM cur
     WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
       AND cur.operation = cur.a_operation AND cur.epoch = cur.a_epoch AND cur.phase = 'held' AND cur.until > {now} AND cur.status = cur.a_claim
    RETURNING cur.member, cur.command, e.stage, e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}
), {include entities/result 0},
{include history/write}
    SELECT moved.shard, moved.command, 0, moved.workspace, '$entity/' || moved.lifecycle || '/' || moved.id, moved.version, 'queued',
           pg_catalog.json_build_object('from', moved.status, 'to', moved.status, 'step', moved.step, 'requester', moved.requester, 'operation', moved.operation,
                             'epoch', moved.epoch, 'stage', moved.stage),
           NULL, NULL, NULL, moved.updated_at
      FROM moved
    {due_notices}
{include entities/select_result}
