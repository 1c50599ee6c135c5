-- Sends a reaction back to the beginning of every stream. Whoever holds one has
-- lost it: what it writes with its end is refused.
-- ?1 shard, ?2 workspace, ?3 reaction
-- do
UPDATE holdfast_follow AS f
   SET watermark = -1, generation = f.generation + 1, epoch = f.epoch + 1, holder = NULL, until = NULL,
       failures = 0, deaths = 0, crash_group = 0, reset_requested = 0, quiet = 0, lost = 0, blocked = 0, failing = NULL, error = NULL,
       due_at = {now}, rank = {now} - (f.due_at - f.rank), updated_at = {now}
 WHERE f.shard = ?1 AND f.workspace = ?2 AND f.reaction = ?3
RETURNING 1
