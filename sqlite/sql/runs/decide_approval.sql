-- Decides an approval that is pending and has not expired, and makes its step due.
-- do
UPDATE holdfast_approval AS a
   SET status = :decision, actor = :actor, label = :label, content = :content, decided_at = {now}
 WHERE a.shard = :shard AND a.workspace = :workspace AND a.run = :run AND a.step = :step AND a.visit = :visit AND a.status = 'pending' AND (a.expires_at IS NULL OR a.expires_at > {now})
   AND EXISTS (SELECT 1 FROM holdfast_step AS s
                WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit AND s.status = 'WAITING')
RETURNING decided_at
-- then
UPDATE holdfast_step AS s
   SET due_at = :did1
 WHERE s.shard = :shard AND s.workspace = :workspace AND s.run = :run AND s.name = :step AND s.visit = :visit
-- then
UPDATE holdfast_run AS r
   SET version = r.version + 1, updated_at = :did1
 WHERE r.shard = :shard AND r.workspace = :workspace AND r.id = :run
-- then
{include history/write}
SELECT :shard, :command, 0, :workspace, '$run/' || :run, r.version, 'approvalDecided',
       json_object('approval', :approval, 'step', :step, 'visit', :visit, 'decision', :decision, 'by', :actor), NULL, NULL, :actor, r.updated_at
  {include runs/by_id}
-- then
SELECT :decision, r.version
  {include runs/by_id}
-- else
SELECT coalesce(a.status, ''), coalesce(r.version, -1)
  FROM (SELECT 1)
  LEFT JOIN holdfast_run AS r ON r.shard = :shard AND r.workspace = :workspace AND r.id = :run
  LEFT JOIN holdfast_approval AS a ON a.shard = :shard AND a.workspace = :workspace AND a.run = :run AND a.step = :step AND a.visit = :visit
