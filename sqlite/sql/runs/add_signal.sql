-- Adds a signal to the inbox of a run that is not finished, unless it is there already, and makes the step due that waits for it.
-- do
INSERT INTO holdfast_signal (shard, workspace, run, id, n, type, payload, at)
SELECT :shard, :workspace, :run, :id, r.version + 1, :type, :payload, {now}
  {include runs/by_id} AND r.status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')
ON CONFLICT (shard, workspace, run, id) DO NOTHING
RETURNING n
-- then
UPDATE holdfast_run AS r
   SET version = r.version + 1, updated_at = {now}
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run
-- also
UPDATE holdfast_step AS s
   SET due_at = {now}
  {include runs/by_id} AND s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = r.step AND s.visit = r.visit
   AND s.status = 'WAITING' AND s.signal = :type
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$run/' || :run, r.version, 'signalled', json_object('id', :id, 'type', :type), NULL, NULL, :actor, r.updated_at
  {include runs/by_id}
-- then
SELECT r.status, :type, :payload, r.version
  {include runs/by_id}
-- else
SELECT coalesce(r.status, ''), coalesce(g.type, ''), coalesce(g.payload, ''), coalesce(r.version, -1)
  FROM (SELECT 1)
  LEFT JOIN holdfast_run AS r ON r.shard = :shard AND r.workspace = :workspace AND r.id = :run
  LEFT JOIN holdfast_signal AS g ON g.shard = :shard AND g.workspace = :workspace AND g.run = :run AND g.id = :id
