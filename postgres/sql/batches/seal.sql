-- Seals batches: no more items can be added. A batch with nothing left to do becomes due.
WITH {members}, moved AS (
    UPDATE {schema}.batch b
       SET sealed = true, version = b.version + 1, updated_at = {now},
           due_at = CASE WHEN b.next = b.items AND b.waiting = 0 AND b.running = 0 AND b.dirty = 0 THEN {now} ELSE b.due_at END
      FROM m
     WHERE b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
       AND NOT b.sealed AND NOT b.cancel_requested AND b.status || '' NOT IN ('CANCELLED', 'COMPLETED') -- || '' makes the planner use the key, not the index of live batches
    RETURNING m.member, b.version, b.items, b.updated_at
), {include history/write}
    SELECT m.shard, m.command, 0, m.workspace, '$batch/' || m.batch, moved.version, 'sealed', pg_catalog.json_build_object('items', moved.items), NULL, NULL, m.actor, moved.updated_at
      FROM m JOIN moved ON moved.member = m.member
    {due_notices}
{include store/select_applied moved}
