-- Resumes PAUSED batches. A batch that still lacks funds is paused again.
WITH {members}, moved AS (
    UPDATE {schema}.batch b
       SET status = CASE WHEN b.next = 0 THEN 'PENDING' ELSE 'RUNNING' END, need = 0, version = b.version + 1, updated_at = {now}
      FROM m
     WHERE b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch AND b.status || '' = 'PAUSED' AND NOT b.cancel_requested -- || '' makes the planner use the key, not the index of live batches
    RETURNING m.member, b.version, b.updated_at
), {include history/write_without_cause}
    SELECT m.shard, m.command, 0, m.workspace, '$batch/' || m.batch, moved.version, 'resumed', '{}', moved.updated_at
      FROM m JOIN moved ON moved.member = m.member
    {due_notices}
{include store/select_applied moved}
