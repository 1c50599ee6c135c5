-- Cancels batches. A batch without any taken item has no charges and nothing to clean
-- up: it becomes CANCELLED at once. Any other batch is flagged, so that no new item
-- starts, and is torn down later.
WITH {members}, moved AS (
    UPDATE {schema}.batch b
       SET status = CASE WHEN b.next = 0 THEN 'CANCELLED' ELSE b.status END, cancel_requested = true, version = b.version + 1, updated_at = {now},
           due_at = CASE WHEN b.next = 0 THEN NULL ELSE {now} END,
           prune_at = CASE WHEN b.next = 0 THEN {now} + b.keep::float8 * interval '1 ms' END
      FROM m
     WHERE b.shard = ANY (ARRAY[m.shard]) AND b.workspace = m.workspace AND b.id = m.batch
       AND NOT b.cancel_requested AND b.status || '' NOT IN ('CANCELLED', 'COMPLETED') -- || '' makes the planner use the key, not the index of live batches
    RETURNING m.member, b.status, b.version, b.items, b.updated_at
), {include history/write}
    SELECT m.shard, m.command, 0, m.workspace, '$batch/' || m.batch, moved.version,
           CASE WHEN moved.status = 'CANCELLED' THEN 'cancelled' ELSE 'cancelRequested' END,
           CASE WHEN moved.status = 'CANCELLED' THEN pg_catalog.json_build_object('cancelled', moved.items, 'charged', 0, 'refunded', 0) ELSE '{}'::json END,
           NULL, NULL, m.actor, moved.updated_at
      FROM m JOIN moved ON moved.member = m.member
    {due_notices}
{include store/select_applied moved}
