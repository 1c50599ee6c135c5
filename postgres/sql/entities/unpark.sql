-- Ends the uncertain phase of an operation without effects of unknown outcome: it is due again, or
-- ends with the given target. Increments the epoch, so that a late holder cannot end the operation. A statement
-- that waited for the entity does not see what happened to its effects meanwhile: the version differs, and the caller retries.
-- :how resume, success or back; :target (NULL: revert)
WITH {members}, cur AS (
    SELECT m.member, m.command, e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}, m.operation AS a_operation,
           m.epoch AS a_epoch, m.how AS a_how, m.target AS a_target, m.event AS a_event, m.outcome AS a_outcome,
           m.note AS a_note, m.correlation AS a_correlation, m.causation AS a_causation, m.actor AS a_actor
      {include entities/lock}
), seen AS (
    SELECT m.member, e.version
      FROM m JOIN {schema}.entity e
        ON e.shard = ANY (ARRAY[m.shard]) AND e.workspace = m.workspace AND e.lifecycle = m.lifecycle AND e.id = m.entity
), moved AS (
    UPDATE {schema}.entity e
       SET phase = CASE WHEN cur.a_how = 'resume' AND cur.begun > 0 THEN 'due' ELSE 'free' END,
           status = CASE WHEN cur.a_how = 'success' THEN cur.a_target WHEN cur.a_how = 'back' OR cur.begun = 0 THEN coalesce(cur.a_target, cur.revert) ELSE cur.status END,
           outcome = CASE WHEN cur.a_how = 'resume' AND cur.begun > 0 THEN NULL ELSE cur.a_outcome END,
           failures = 0, deaths = 0, due_at = {now}, version = cur.version + 1, epoch = cur.epoch + 1, updated_at = {now}
      FROM cur JOIN seen ON seen.member = cur.member AND seen.version = cur.version
     WHERE e.shard = ANY (ARRAY[cur.shard]) AND e.workspace = cur.workspace AND e.lifecycle = cur.lifecycle AND e.id = cur.id
       AND cur.operation = cur.a_operation AND cur.epoch = cur.a_epoch AND cur.phase = 'uncertain'
       AND NOT EXISTS (SELECT 1 FROM {schema}.effect x WHERE x.shard = ANY (ARRAY[cur.shard]) AND x.workspace = cur.workspace
                                                         AND x.operation = cur.operation AND x.state = 'begun')
    RETURNING cur.member, cur.command, cur.status AS was, e.shard, e.workspace, e.lifecycle, e.id, {include entities/columns e}, cur.a_event,
              cur.a_note, cur.a_correlation, cur.a_causation, cur.a_actor
), result AS (
    SELECT moved.member, 1 AS applied, {include entities/columns moved} FROM moved
    UNION ALL
    SELECT cur.member, CASE WHEN cur.phase = 'uncertain' AND cur.version <> seen.version THEN 2 ELSE 0 END, {include entities/columns cur}
      FROM cur JOIN seen ON seen.member = cur.member
     WHERE cur.member NOT IN (SELECT moved.member FROM moved)
), {include history/write}
    SELECT moved.shard, moved.command, 0, moved.workspace, '$entity/' || moved.lifecycle || '/' || moved.id, moved.version,
           CASE moved.phase WHEN 'due' THEN 'resumed' ELSE moved.a_event END,
           pg_catalog.json_build_object('from', moved.was, 'to', moved.status, 'step', moved.step, 'requester', moved.requester, 'operation', moved.operation,
                             'epoch', moved.epoch, 'outcome', moved.outcome, 'effects', moved.begun, 'input', moved.input, 'note', moved.a_note::json),
           moved.a_correlation, moved.a_causation, moved.a_actor, moved.updated_at
      FROM moved
    {due_notices}
{include entities/select_result}
