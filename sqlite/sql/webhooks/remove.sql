-- Removes a webhook and its secrets, with its event. A removed webhook is not changed.
-- do
UPDATE holdfast_webhook AS w
   SET removed_at = {now}, version = w.version + 1, secret = '', former = NULL, former_until = NULL
 WHERE w.shard = :shard AND w.workspace = :workspace AND w.id = :id AND w.removed_at IS NULL
RETURNING 1
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$webhook/' || :id, w.version, 'removed', '{}', NULL, NULL, :actor, w.removed_at
  FROM holdfast_webhook AS w
 WHERE w.shard = :shard AND w.workspace = :workspace AND w.id = :id
-- else
SELECT 0
