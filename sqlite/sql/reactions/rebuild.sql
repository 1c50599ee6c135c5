-- Resets a reaction to the beginning of every stream.
UPDATE holdfast_follow AS f
   SET watermark = -1, generation = f.generation + 1, epoch = f.epoch + 1, holder = NULL, until = NULL,
       failures = 0, deaths = 0, crash_group = 0, reset_requested = 0, quiet = 0, lost = 0, blocked = 0, failing = NULL, error = NULL,
       due_at = {now}, rank = {now} - (f.due_at - f.rank), updated_at = {now}
 WHERE f.shard = :shard AND f.workspace = :workspace AND f.reaction = :reaction
RETURNING 1
