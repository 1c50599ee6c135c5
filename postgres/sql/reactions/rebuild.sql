-- Resets a reaction to the beginning of every stream. Current holders lose their leases:
-- a write with the end of a lease is refused.
WITH cur AS MATERIALIZED (
    SELECT f.shard, f.workspace, f.reaction, f.stream
      FROM {schema}.follow f
     WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = :reaction
     ORDER BY f.shard, f.workspace, f.reaction, f.stream
       FOR UPDATE
), moved AS (
    UPDATE {schema}.follow f
       SET watermark = -1, generation = f.generation + 1, epoch = f.epoch + 1, holder = NULL, until = NULL,
           failures = 0, deaths = 0, crash_group = 0, reset_requested = false, quiet = false, lost = 0, blocked = false, failing = NULL, error = NULL,
           due_at = {now}, rank = {now} - (f.due_at - f.rank), updated_at = {now}
      FROM cur
     WHERE f.shard = cur.shard AND f.workspace = cur.workspace AND f.reaction = cur.reaction AND f.stream = cur.stream
    RETURNING 1
)
SELECT 1 FROM moved
