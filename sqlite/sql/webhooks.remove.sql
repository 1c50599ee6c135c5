-- Removes a webhook, with its secrets, with its event. One that is removed stays as it
-- is.
-- ?1 shard, ?2 workspace, ?3 command, ?4 id, ?5 actor
-- do
UPDATE holdfast_webhook AS w
   SET removed_at = {now}, version = w.version + 1, secret = '', former = NULL, former_until = NULL
 WHERE w.shard = ?1 AND w.workspace = ?2 AND w.id = ?4 AND w.removed_at IS NULL
RETURNING 1
-- then
INSERT INTO holdfast_history
    (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$webhook/' || ?4, w.version, 'removed', '{}', NULL, NULL, ?5, w.removed_at
  FROM holdfast_webhook AS w
 WHERE w.shard = ?1 AND w.workspace = ?2 AND w.id = ?4
-- else
SELECT 0
