-- Decides an approval that is pending and has not expired, and has its step looked at.
-- ?1 shard, ?2 workspace, ?3 command, ?4 approval, ?5 run, ?6 step, ?7 visit, ?8 decision, ?9 actor, ?10 label, ?11 content
-- do
UPDATE holdfast_approval AS a
   SET status = ?8, actor = ?9, label = ?10, content = ?11, decided_at = {now}
 WHERE a.shard = ?1 AND a.workspace = ?2 AND a.run = ?5 AND a.step = ?6 AND a.visit = ?7 AND a.status = 'pending' AND (a.expires_at IS NULL OR a.expires_at > {now})
   AND EXISTS (SELECT 1 FROM holdfast_step AS s
                WHERE s.shard = ?1 AND s.workspace = ?2 AND s.run = ?5 AND s.name = ?6 AND s.visit = ?7 AND s.status = 'WAITING')
RETURNING decided_at
-- then
UPDATE holdfast_step AS s
   SET due_at = :did1
 WHERE s.shard = ?1 AND s.workspace = ?2 AND s.run = ?5 AND s.name = ?6 AND s.visit = ?7
-- then
UPDATE holdfast_run AS r
   SET version = r.version + 1, updated_at = :did1
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?5
-- then
INSERT INTO holdfast_history (shard, id, n, workspace, stream, version, name, data, correlation, causation, actor, at)
SELECT ?1, ?3, 0, ?2, '$run/' || ?5, r.version, 'approvalDecided',
       json_object('approval', ?4, 'step', ?6, 'visit', ?7, 'decision', ?8, 'by', ?9), NULL, NULL, ?9, r.updated_at
  FROM holdfast_run AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?5
-- then
SELECT ?8, r.version
  FROM holdfast_run AS r
 WHERE r.shard = ?1 AND r.workspace = ?2 AND r.id = ?5
-- else
SELECT coalesce(a.status, ''), coalesce(r.version, -1)
  FROM (SELECT 1)
  LEFT JOIN holdfast_run AS r ON r.shard = ?1 AND r.workspace = ?2 AND r.id = ?5
  LEFT JOIN holdfast_approval AS a ON a.shard = ?1 AND a.workspace = ?2 AND a.run = ?5 AND a.step = ?6 AND a.visit = ?7
