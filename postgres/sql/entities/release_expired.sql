-- Releases an expired lease, depending on the effects begun under it: if no begun effect
-- may have happened, the entity is reverted; otherwise it stays in the claim, to be resumed
-- or, if it cannot be resumed or too many holders have crashed, to be parked until a person
-- decides. A lease whose remote holder never reported is a lost hand-out, not a crash: the
-- operation is due again after a pause.
-- :resume whether a node can resume it
WITH {members}, cur AS (
    SELECT m.member, m.command, e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}, m.epoch AS a_epoch,
           m.note AS a_note, m.claim AS a_claim, m.pause AS a_pause, e.quiet, e.lost,
           CASE WHEN e.begun = 0 AND NOT (e.quiet AND e.status = m.claim) THEN 'recovered'
                WHEN e.begun > 0 AND (e.manual OR m.resume = 0 OR NOT e.quiet AND e.deaths + 1 >= m.allowed) THEN 'parked'
                WHEN e.quiet THEN 'lost' ELSE 'interrupted' END AS fate
      {include entities/lock}
), moved AS (
    UPDATE {schema}.entity e
       SET phase = CASE cur.fate WHEN 'recovered' THEN 'free' WHEN 'parked' THEN 'uncertain' ELSE 'due' END,
           status = CASE WHEN cur.fate = 'recovered' AND cur.status = cur.a_claim THEN cur.revert ELSE cur.status END,
           outcome = CASE WHEN cur.fate = 'recovered' THEN 'recovered' END,
           error = CASE WHEN cur.quiet THEN 'handed out to ' || cur.holder || ', but no response arrived' ELSE 'the lease of holder ' || cur.holder || ' expired' END,
           deaths = cur.deaths + CASE WHEN cur.quiet THEN 0 ELSE 1 END, version = cur.version + 1, quiet = false,
           lost = CASE WHEN cur.fate = 'lost' THEN cur.lost + 1 ELSE 0 END, holder = NULL, until = NULL,
           due_at = {now} + CASE WHEN cur.fate = 'lost' THEN cur.a_pause ELSE 0 END::float8 * interval '1 ms',
           updated_at = {now}
      FROM cur
     WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
       AND cur.epoch = cur.a_epoch AND cur.phase = 'held' AND cur.until <= {now}
    RETURNING cur.member, cur.command, cur.status AS was, e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}, cur.a_note,
              cur.fate, CASE WHEN cur.quiet THEN cur.lost + 1 ELSE 0 END AS lost
), {include entities/result 0},
{include history/write}
    SELECT moved.shard, moved.command, 0, moved.workspace, '$entity/' || moved.lifecycle || '/' || moved.id, moved.version,
           moved.fate,
           pg_catalog.json_build_object('from', moved.was, 'to', moved.status, 'step', moved.step, 'requester', moved.requester, 'operation', moved.operation,
                             'epoch', moved.epoch, 'effects', moved.begun, 'deaths', moved.deaths, 'lost', moved.lost, 'message', moved.error, 'note', moved.a_note::json),
           NULL, NULL, NULL, moved.updated_at
      FROM moved
    {due_notices}
{include entities/select_result}
